package service

import (
	"crypto/tls"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"sync"

	"childlog/eventlog"
)

// certificate is a pair of files that may be replaced at any time: whoever renews
// a certificate need not tell the service, and no connection is lost. Each
// handshake looks at the files, which costs two system calls, and takes what is
// there if they are others than before. A pair that does not load, such as one of
// which half was replaced so far, is logged once; the one before it goes on, and
// the files are looked at again when they have changed again.
type certificate struct {
	certFile, keyFile string
	log               *slog.Logger

	mu     sync.Mutex
	pair   *tls.Certificate
	looked [2]fs.FileInfo // at what was tried last
}

// loadCertificate reads the pair. Errors: ErrInvalid.
func loadCertificate(certFile, keyFile string, log *slog.Logger) (*certificate, error) {
	c := &certificate{certFile: certFile, keyFile: keyFile, log: log}
	if _, err := c.renew(); err != nil {
		return nil, fmt.Errorf("%w: certificate: %w", eventlog.ErrInvalid, err)
	}
	return c, nil
}

// get is the GetCertificate of a [tls.Config].
func (c *certificate) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch renewed, err := c.renew(); {
	case err != nil:
		c.log.Warn("the certificate was not renewed; the one before it goes on", "error", err)
	case renewed:
		c.log.Info("the certificate was renewed", "until", c.pair.Leaf.NotAfter)
	}
	return c.pair, nil
}

// renew reads the pair if the files are others than when it was tried last. They
// are looked at before they are read: what changes meanwhile is seen next time.
func (c *certificate) renew() (renewed bool, err error) {
	var now [2]fs.FileInfo
	for i, name := range []string{c.certFile, c.keyFile} {
		if now[i], err = os.Stat(name); err != nil {
			now[i] = nil // told once
			break
		}
	}
	if c.pair != nil && same(now[0], c.looked[0]) && same(now[1], c.looked[1]) {
		return false, nil
	}
	c.looked = now
	if err != nil {
		return false, err
	}
	pair, err := tls.LoadX509KeyPair(c.certFile, c.keyFile)
	if err != nil {
		return false, err
	}
	c.pair = &pair
	return true, nil
}

// same reports whether a file is the one that was looked at, as far as can be
// told without reading it.
func same(a, b fs.FileInfo) bool {
	if a == nil || b == nil {
		return a == b
	}
	return os.SameFile(a, b) && a.Size() == b.Size() && a.ModTime().Equal(b.ModTime())
}
