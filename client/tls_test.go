package client_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"log/slog"
	"math/big"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/credentials"

	"github.com/quorumwise/quorumwise/client"
	"github.com/quorumwise/quorumwise/e2e/fakeetcd"
)

// authority signs certificates for tests.
type authority struct {
	t    *testing.T
	key  *ecdsa.PrivateKey
	cert *x509.Certificate
}

func newAuthority(t *testing.T) *authority {
	a := &authority{t: t}
	self := &x509.Certificate{Subject: pkix.Name{CommonName: "ca"}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	der, key := a.sign(self, self)
	a.key = key
	var err error
	if a.cert, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	return a
}

// sign makes a key and a certificate for it; the first one signs itself.
func (a *authority) sign(cert, parent *x509.Certificate) ([]byte, *ecdsa.PrivateKey) {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	cert.SerialNumber = big.NewInt(time.Now().UnixNano())
	cert.NotBefore, cert.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(24*time.Hour)
	signer := a.key
	if signer == nil {
		signer = key
	}
	der, err := x509.CreateCertificate(rand.Reader, cert, parent, &key.PublicKey, signer)
	if err != nil {
		a.t.Fatal(err)
	}
	return der, key
}

// server returns what a server speaks whose certificate bears one name.
func (a *authority) server(name string) credentials.TransportCredentials {
	der, key := a.sign(&x509.Certificate{
		Subject: pkix.Name{CommonName: name}, DNSNames: []string{name}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}, a.cert)
	return credentials.NewTLS(&tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}})
}

// client returns what trusts the authority.
func (a *authority) client() *tls.Config {
	roots := x509.NewCertPool()
	roots.AddCert(a.cert)
	return &tls.Config{RootCAs: roots}
}

// Each member's certificate bears its own name only. The server name is
// that of each endpoint, for the user's calls and for probes, with a shim beside
// etcd, in it, and without.
func TestEachMemberIsCheckedByItsOwnName(t *testing.T) {
	for _, shim := range []fakeetcd.Shim{fakeetcd.ShimSidecar, fakeetcd.ShimInProcess, fakeetcd.ShimNone} {
		t.Run(fmt.Sprint(shim), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ca := newAuthority(t)
				c := fakeetcd.New(3, fakeetcd.Options{Shim: shim, Credentials: func(index int) credentials.TransportCredentials {
					return ca.server(fmt.Sprintf("fake-%d", index+1))
				}})
				defer c.Close()
				cli := newTLSClient(t, c, ca)
				defer closeInTime(t, cli)
				settle(t, cli)
				for range 3 {
					if _, err := cli.Get(t.Context(), "k"); err != nil {
						t.Errorf("Get: %v", err)
					}
				}
				for i, ep := range c.Endpoints() {
					if _, err := cli.Status(t.Context(), ep); err != nil {
						t.Errorf("Status of member %d: %v", i, err)
					}
				}
				cli.SetEndpoints(cli.Endpoints()[2], cli.Endpoints()[1]) // another first one
				time.Sleep(2 * time.Second)
				settle(t, cli)
			})
		})
	}
}

// A member whose certificate bears another's name is not talked to, and judged
// as unreachable; the others serve.
func TestMemberWithAnothersCertificateIsNotUsed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ca := newAuthority(t)
		c := fakeetcd.New(3, fakeetcd.Options{Shim: fakeetcd.ShimSidecar, Credentials: func(index int) credentials.TransportCredentials {
			return ca.server([]string{"fake-1", "fake-1", "fake-3"}[index])
		}})
		defer c.Close()
		cli := newTLSClient(t, c, ca)
		defer closeInTime(t, cli)
		time.Sleep(5 * time.Second)
		for range 6 {
			if _, err := cli.Put(t.Context(), "k", "v"); err != nil {
				t.Errorf("Put: %v", err)
			}
		}
		for i, want := range []string{"healthy", "unhealthy", "healthy"} {
			if e := cli.Health().Endpoints[i]; e.Grade != want || e.Connected != (want == "healthy") {
				t.Errorf("%s is %s (%s), connected %v; want %s", e.Address, e.Grade, e.Reason, e.Connected, want)
			}
		}
		for _, r := range c.Requests("") {
			if r.Member == 1 {
				t.Fatalf("%s reached the member with another's certificate", r.Method)
			}
		}
	})
}

func newTLSClient(t *testing.T, c *fakeetcd.Cluster, ca *authority) *client.Client {
	cfg := c.ClientConfig()
	cfg.TLS = ca.client()
	for i, ep := range cfg.Endpoints {
		cfg.Endpoints[i] = "https://" + ep
	}
	cli, err := client.New(client.Config{Config: cfg, Health: options{Logger: slog.New(slog.DiscardHandler)}})
	if err != nil {
		t.Fatal(err)
	}
	return cli
}
