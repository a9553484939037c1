package sidecar

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"log/slog"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/credentials"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/quorumwise/quorumwise/healthsvc"
)

// serverName is what certificates of the tests are for.
const serverName = "member-a.example"

// authority issues certificates.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pem  []byte
	next int64 // serial number
}

func newAuthority(t *testing.T, name string) *authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return &authority{cert, key, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 100}
}

// issue returns a certificate and its key.
func (a *authority) issue(t *testing.T) (cert, key []byte) {
	t.Helper()
	a.next++
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(a.next), Subject: pkix.Name{CommonName: serverName}, DNSNames: []string{serverName, "localhost"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, &private.PublicKey, a.key)
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: encoded})
}

func write(t *testing.T, path string, content []byte) string {
	t.Helper()
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// clientOf trusts roots and shows a certificate of signer, if there is one.
func clientOf(t *testing.T, roots, signer *authority) credentials.TransportCredentials {
	t.Helper()
	pool := x509.NewCertPool()
	pool.AddCert(roots.cert)
	cfg := &tls.Config{RootCAs: pool}
	if signer != nil {
		pair, err := tls.X509KeyPair(signer.issue(t))
		if err != nil {
			t.Fatal(err)
		}
		cfg.Certificates = []tls.Certificate{pair}
	}
	return credentials.NewTLS(cfg)
}

// live asks once over a connection of its own.
func (r *rig) live(t *testing.T, creds credentials.TransportCredentials) error {
	t.Helper()
	client, _ := r.client(t, creds)
	_, err := client.Check(context.Background(), &healthpb.HealthCheckRequest{Service: healthsvc.ServiceLive})
	return err
}

func TestSidecarReadsRotatedFilesAtEachHandshake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var member etcd
		member.start(t, nil)
		dir := t.TempDir()
		first, second := newAuthority(t, "first"), newAuthority(t, "second")
		certFile, keyFile, caFile := filepath.Join(dir, "cert"), filepath.Join(dir, "key"), filepath.Join(dir, "ca")
		rotate := func(server, clients *authority) {
			cert, key := server.issue(t)
			write(t, certFile, cert)
			write(t, keyFile, key)
			write(t, caFile, clients.pem)
		}
		rotate(first, first)
		var log bytes.Buffer
		r := run(t, Config{CertFile: certFile, KeyFile: keyFile, TrustedCAFile: caFile, Logger: slog.New(slog.NewTextHandler(&log, nil))}, member.dial)
		early, _ := r.client(t, clientOf(t, first, first))
		time.Sleep(3 * time.Second)
		want(t, early, healthsvc.ServiceLive, serving, "", "the first certificates")
		if err := r.live(t, clientOf(t, first, nil)); err == nil {
			t.Error("a client without a certificate was let in although --trusted-ca-file is given")
		}
		if err := r.live(t, clientOf(t, first, second)); err == nil {
			t.Error("a client of another authority was let in")
		}
		if err := r.live(t, nil); err == nil {
			t.Error("a client in plain text was let in")
		}

		rotate(second, second)
		if err := r.live(t, clientOf(t, second, second)); err != nil {
			t.Errorf("after the rotation: %v, want the new certificates in use", err)
		}
		if err := r.live(t, clientOf(t, first, first)); err == nil {
			t.Error("after the rotation the old certificates are still in use")
		}

		_, otherKey := second.issue(t)
		write(t, keyFile, otherKey) // in the middle of a rotation
		for range 3 {
			if err := r.live(t, clientOf(t, second, second)); err != nil {
				t.Errorf("with a key that does not match yet: %v, want the last good files in use", err)
			}
		}
		if err := os.Remove(certFile); err != nil {
			t.Fatal(err)
		}
		if err := r.live(t, clientOf(t, second, second)); err != nil {
			t.Errorf("with a file missing: %v, want the last good files in use", err)
		}
		rotate(first, second)
		if err := r.live(t, clientOf(t, first, second)); err != nil {
			t.Errorf("after the rotation was completed: %v", err)
		}
		want(t, early, healthsvc.ServiceLive, serving, "", "connections made before are not touched")
		r.cancel()
		<-r.done
		if got := strings.Count(log.String(), "certificate files are bad"); got != 1 {
			t.Errorf("the bad files were logged %d times, want once:\n%s", got, log.String())
		}
		if !strings.Contains(log.String(), "certificate files are good again") {
			t.Errorf("that the files are good again was not logged:\n%s", log.String())
		}
	})
}

func TestHandshakesGoOnWhileTheDiskHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir, ca := t.TempDir(), newAuthority(t, "ca")
		cert, key := ca.issue(t)
		var log bytes.Buffer
		r, err := newRotating(files{
			cert: file{"cert-file", write(t, filepath.Join(dir, "cert"), cert)},
			key:  file{"key-file", write(t, filepath.Join(dir, "key"), key)},
		}, true, slog.New(slog.NewTextHandler(&log, nil)))
		if err != nil {
			t.Fatal(err)
		}
		first := r.current()
		var looks atomic.Int64
		disk := make(chan struct{})
		r.read = func() (contents, error) { looks.Add(1); <-disk; return r.files.read() }

		var handshakes sync.WaitGroup
		for wait := range 4 { // one a second
			handshakes.Go(func() {
				began := time.Now()
				got, took := r.current(), time.Since(began)
				if want := max(readTime-time.Duration(wait)*time.Second, 0); got != first || took != want {
					t.Errorf("handshake %d went on after %v, want after %v, with the last good files: a hung disk must not stop new connections", wait, took, want)
				}
			})
			time.Sleep(time.Second)
		}
		handshakes.Wait()
		if got := looks.Load(); got != 1 {
			t.Errorf("%d goroutines read the files that hang, want one", got)
		}
		cert, key = ca.issue(t)
		write(t, r.files.cert.path, cert)
		write(t, r.files.key.path, key)
		close(disk)
		synctest.Wait()
		if r.current() == first {
			t.Error("the old files stay in use although the disk answers again")
		}
		if bad, good := strings.Count(log.String(), "does the disk hang"), strings.Count(log.String(), "good again"); bad != 1 || good != 1 {
			t.Errorf("got %d lines that it hangs, %d that it is over, want one each:\n%s", bad, good, log.String())
		}
	})
}

func TestSidecarReachesEtcdWithItsOwnCertificate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		ca := newAuthority(t, "ca")
		pair, err := tls.X509KeyPair(ca.issue(t))
		if err != nil {
			t.Fatal(err)
		}
		pool := x509.NewCertPool()
		pool.AddCert(ca.cert)
		var member etcd
		member.start(t, credentials.NewTLS(&tls.Config{Certificates: []tls.Certificate{pair}, ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert}))
		cert, key := ca.issue(t)
		cfg := Config{
			EtcdEndpoint: "https://" + serverName + ":2379",
			CACert:       write(t, filepath.Join(dir, "ca"), ca.pem),
		}
		cfg.DialOptions = append(cfg.DialOptions, noLookup)
		bare := run(t, cfg, member.dial)
		cfg.Cert, cfg.Key = write(t, filepath.Join(dir, "cert"), cert), write(t, filepath.Join(dir, "key"), key)
		r := run(t, cfg, member.dial)
		time.Sleep(5 * time.Second)
		client, _ := r.client(t, nil)
		want(t, client, "", serving, "", "etcd asks for a client certificate, and got one")
		client, _ = bare.client(t, nil)
		want(t, client, "", notServing, healthsvc.ReasonUnreachable, "etcd lets nobody in without a certificate")
	})
}
