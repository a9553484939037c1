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
	"time"

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

// readTime is how long a handshake waits for its files before it goes on with the last good ones.
// A few kilobytes take no longer, unless the disk hangs.
const readTime = 2 * time.Second

// rotating are credentials that read their files at each handshake, so that a rotation needs
// no restart and no signal. Reading and comparing a few kilobytes is nothing beside a handshake.
//
// A disk that hangs must not stop new connections: files are read in a goroutine of their own, one
// at a time, and no handshake waits for it for longer than readTime after it began. That goroutine
// cannot be cancelled; it ends when the disk answers.
type rotating struct {
	files  files
	read   func() (contents, error) // of files
	server bool
	log    *slog.Logger

	mu      sync.Mutex
	reading *reading // nil: none is under way
	last    contents
	creds   credentials.TransportCredentials // made from last; never nil
	sick    bool                             // the files were bad at the last handshake; said once
}

// reading is one look at the files.
type reading struct {
	began time.Time
	done  chan struct{} // closed when what it found is in use
}

var errHangs = fmt.Errorf("reading them takes more than %v: does the disk hang?", readTime)

func newRotating(f files, server bool, log *slog.Logger) (*rotating, error) {
	r := &rotating{files: f, read: f.read, server: server, log: log}
	now, err := r.read() // for as long as it takes: there is nothing yet to go on with
	if err != nil {
		return nil, err
	}
	if err := r.take(now); err != nil {
		return nil, err
	}
	return r, nil
}

// take replaces the credentials if the files have changed. The caller has mu, or is alone.
func (r *rotating) take(now contents) error {
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
	one := r.look()
	patience := time.NewTimer(readTime - time.Since(one.began))
	defer patience.Stop()
	select {
	case <-one.done:
	case <-patience.C:
		r.overdue(one)
	}
	return r.good()
}

// look begins to read the files, or joins those who wait for that already.
func (r *rotating) look() *reading {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.reading != nil {
		return r.reading
	}
	one := &reading{began: time.Now(), done: make(chan struct{})}
	r.reading = one
	go r.finish(one)
	return one
}

func (r *rotating) finish(one *reading) {
	defer close(one.done)
	now, err := r.read()
	r.mu.Lock()
	r.reading = nil
	if err == nil {
		err = r.take(now)
	}
	changed := r.judge(err)
	r.mu.Unlock()
	r.say(changed, err)
}

// overdue notes that the files could not be read in time, unless they were in this very moment.
func (r *rotating) overdue(one *reading) {
	r.mu.Lock()
	changed := r.reading == one && r.judge(errHangs)
	r.mu.Unlock()
	r.say(changed, errHangs)
}

// judge reports whether the files turned good or bad. The caller has mu.
func (r *rotating) judge(err error) (changed bool) {
	changed = r.sick != (err != nil)
	r.sick = err != nil
	return changed
}

func (r *rotating) say(changed bool, err error) {
	switch {
	case !changed:
	case err != nil:
		r.log.Error("certificate files are bad, the last good ones stay in use", "error", err)
	default:
		r.log.Info("certificate files are good again")
	}
}

// good returns the last good credentials.
func (r *rotating) good() credentials.TransportCredentials {
	r.mu.Lock()
	defer r.mu.Unlock()
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

// Info implements credentials.TransportCredentials. No file changes it.
func (r *rotating) Info() credentials.ProtocolInfo { return r.good().Info() }

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
