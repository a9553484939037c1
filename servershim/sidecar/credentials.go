package sidecar

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"sync"

	"google.golang.org/grpc/credentials"
)

// file is a flag and the file that it names; without a path it is not given.
type file struct{ flag, path string }

func (f file) read() ([]byte, error) {
	if f.path == "" {
		return nil, nil
	}
	content, err := os.ReadFile(f.path)
	switch {
	case err == nil:
		return content, nil
	case errors.Is(err, fs.ErrNotExist):
		return nil, flagError(f.flag, f.path, "no such file: check the path")
	case errors.Is(err, fs.ErrPermission):
		return nil, flagError(f.flag, f.path, "not readable: give this user permission")
	default:
		return nil, flagError(f.flag, f.path, fmt.Sprintf("cannot be read: %v", errors.Unwrap(err)))
	}
}

// files are what one side of TLS is made from.
type files struct{ roots, cert, key file }

// contents is what was in them.
type contents struct{ roots, cert, key []byte }

func (c contents) equal(o contents) bool {
	return bytes.Equal(c.roots, o.roots) && bytes.Equal(c.cert, o.cert) && bytes.Equal(c.key, o.key)
}

func (f files) read() (c contents, err error) {
	for _, one := range []struct {
		to   *[]byte
		file file
	}{{&c.roots, f.roots}, {&c.cert, f.cert}, {&c.key, f.key}} {
		if *one.to, err = one.file.read(); err != nil {
			return contents{}, err
		}
	}
	return c, nil
}

// parse makes a configuration; which side uses roots for what is the caller's.
func (f files) parse(c contents) (pool *x509.CertPool, certificates []tls.Certificate, err error) {
	if f.roots.path != "" {
		pool = x509.NewCertPool()
		if !pool.AppendCertsFromPEM(c.roots) {
			return nil, nil, flagError(f.roots.flag, f.roots.path, "no certificate in it: want PEM")
		}
	}
	if f.cert.path != "" {
		pair, err := tls.X509KeyPair(c.cert, c.key)
		if err != nil {
			return nil, nil, flagError(f.cert.flag, f.cert.path, fmt.Sprintf("does not go with --%s %s: %v: give the key of this certificate", f.key.flag, f.key.path, err))
		}
		certificates = []tls.Certificate{pair}
	}
	return pool, certificates, nil
}

// rotating are credentials that read their files at each handshake (F28), so that a rotation needs
// no restart and no signal. Reading and comparing a few kilobytes is nothing beside a handshake.
type rotating struct {
	files  files
	server bool
	log    *slog.Logger

	mu    sync.Mutex
	last  contents
	creds credentials.TransportCredentials // made from last; never nil
	sick  bool                             // the files were bad at the last handshake; said once
}

func newRotating(f files, server bool, log *slog.Logger) (*rotating, error) {
	r := &rotating{files: f, server: server, log: log}
	if err := r.load(); err != nil {
		return nil, err
	}
	return r, nil
}

// load replaces the credentials if the files have changed. The caller has mu, or is alone.
func (r *rotating) load() error {
	now, err := r.files.read()
	if err != nil {
		return err
	}
	if r.creds != nil && now.equal(r.last) {
		return nil
	}
	pool, certificates, err := r.files.parse(now)
	if err != nil {
		return err
	}
	cfg := &tls.Config{MinVersion: tls.VersionTLS12, Certificates: certificates}
	if r.server {
		if pool != nil {
			cfg.ClientCAs, cfg.ClientAuth = pool, tls.RequireAndVerifyClientCert
		}
	} else {
		cfg.RootCAs = pool
	}
	r.last, r.creds = now, credentials.NewTLS(cfg)
	return nil
}

// current returns credentials from the files as they are, or the last good ones.
func (r *rotating) current() credentials.TransportCredentials {
	r.mu.Lock()
	defer r.mu.Unlock()
	err := r.load()
	if sick := err != nil; sick != r.sick {
		r.sick = sick
		if sick {
			r.log.Error("certificate files are bad, the last good ones stay in use", "error", err)
		} else {
			r.log.Info("certificate files are good again")
		}
	}
	return r.creds
}

// ClientHandshake implements credentials.TransportCredentials.
func (r *rotating) ClientHandshake(ctx context.Context, authority string, conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	return r.current().ClientHandshake(ctx, authority, conn)
}

// ServerHandshake implements credentials.TransportCredentials.
func (r *rotating) ServerHandshake(conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	return r.current().ServerHandshake(conn)
}

// Info implements credentials.TransportCredentials.
func (r *rotating) Info() credentials.ProtocolInfo { return r.current().Info() }

// Clone implements credentials.TransportCredentials. What it has read may be shared.
func (r *rotating) Clone() credentials.TransportCredentials { return r }

// OverrideServerName implements credentials.TransportCredentials; names are those of endpoints.
func (r *rotating) OverrideServerName(string) error {
	return errors.New("sidecar: the server name is that of the endpoint")
}

// serverCredentials returns what we serve with; nil is plain text.
func (c Config) serverCredentials() (credentials.TransportCredentials, error) {
	if c.CertFile == "" {
		return nil, nil
	}
	return newRotating(files{
		roots: file{"trusted-ca-file", c.TrustedCAFile},
		cert:  file{"cert-file", c.CertFile},
		key:   file{"key-file", c.KeyFile},
	}, true, c.Logger)
}

// ClientCredentials returns credentials from files of those flags, read again at each handshake.
// Without files it verifies servers by the system's roots.
func ClientCredentials(cacert, cert, key string, log *slog.Logger) (credentials.TransportCredentials, error) {
	return newRotating(files{
		roots: file{"cacert", cacert},
		cert:  file{"cert", cert},
		key:   file{"key", key},
	}, false, log)
}
