package service

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"time"

	"childlog/eventlog"
)

// Address says where to listen over TCP.
type Address struct {
	Listen            string // host:port; port 0 takes a free one
	CertFile, KeyFile string // PEM; needed for anything but loopback; may be replaced while it listens
}

// Server serves a service over TCP: HTTP/1.1, or the same over TLS 1.3. HTTP/2
// is not spoken, since its streams would pass by the limits on connections.
type Server struct {
	service  *Service
	http     *http.Server
	listener net.Listener
	secure   bool
}

// Check refuses an address that would send tokens in clear text over a network.
// Errors: ErrInvalid.
func (a Address) Check() error {
	host, _, err := net.SplitHostPort(a.Listen)
	if err != nil {
		return fmt.Errorf("%w: listen address %.80q: want HOST:PORT such as 127.0.0.1:7431", eventlog.ErrInvalid, a.Listen)
	}
	if (a.CertFile == "") != (a.KeyFile == "") {
		return fmt.Errorf("%w: a certificate and its key go together", eventlog.ErrInvalid)
	}
	ip, err := netip.ParseAddr(host)
	if loopback := host == "localhost" || err == nil && ip.IsLoopback(); !loopback && a.CertFile == "" {
		return fmt.Errorf("%w: listen address %.80q is not loopback: tokens and logs would cross the network in clear text; give a certificate and its key", eventlog.ErrInvalid, a.Listen)
	}
	return nil
}

// Listen takes the address. Errors: ErrInvalid, and those of the network.
func (s *Service) Listen(ctx context.Context, a Address) (*Server, error) {
	if err := a.Check(); err != nil {
		return nil, err
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", a.Listen)
	if err != nil {
		return nil, err
	}
	if ap, err := netip.ParseAddrPort(l.Addr().String()); a.CertFile == "" && (err != nil || !ap.Addr().IsLoopback()) {
		_ = l.Close()
		return nil, fmt.Errorf("%w: %q resolves to %s, which is not loopback", eventlog.ErrInvalid, a.Listen, l.Addr())
	}
	listener := net.Listener(newGate(l, s.limits, s.metrics))
	if a.CertFile != "" {
		cert, err := loadCertificate(a.CertFile, a.KeyFile, s.log)
		if err != nil {
			_ = l.Close()
			return nil, err
		}
		listener = tls.NewListener(listener, &tls.Config{GetCertificate: cert.get, MinVersion: tls.VersionTLS13, NextProtos: []string{"http/1.1"}})
	}
	srv := &http.Server{
		Handler:                      s.TCP(),
		ReadHeaderTimeout:            s.limits.HeaderTime,
		ReadTimeout:                  s.limits.BodyTime,
		WriteTimeout:                 s.limits.BodyTime + s.limits.WorkTime + s.limits.WriteTime, // streams set their own
		IdleTimeout:                  s.limits.IdleTime,
		MaxHeaderBytes:               s.limits.HeaderBytes,
		DisableGeneralOptionsHandler: true,                                                // OPTIONS is a method like any other that no path has
		ErrorLog:                     slog.NewLogLogger(s.log.Handler(), slog.LevelDebug), // what strangers do wrong below HTTP
		Protocols:                    new(http.Protocols),
	}
	srv.Protocols.SetHTTP1(true)
	return &Server{service: s, http: srv, listener: listener, secure: a.CertFile != ""}, nil
}

// URL is where the service is.
func (v *Server) URL() string {
	if v.secure {
		return "https://" + v.listener.Addr().String()
	}
	return "http://" + v.listener.Addr().String()
}

// Serve answers until ctx ends. Then nobody new comes in, streams end, and
// requests that are under way have the grace to finish; what does not is cut
// off, its outcome unknown to its client. When Serve returns no request is
// being answered any more, so that the store can be closed.
func (v *Server) Serve(ctx context.Context, grace time.Duration) error {
	served := make(chan error, 1)
	go func() { served <- v.http.Serve(v.listener) }()
	select {
	case err := <-served:
		v.service.Stop()
		return errors.Join(err, v.http.Close())
	case <-ctx.Done():
	}
	v.service.Stop()
	wait, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
	defer cancel()
	err := v.http.Shutdown(wait)
	if errors.Is(err, context.DeadlineExceeded) {
		v.service.log.Warn("requests were cut off", "after", grace)
		err = v.http.Close()
	}
	if closed := <-served; !errors.Is(closed, http.ErrServerClosed) {
		err = errors.Join(err, closed)
	}
	return err
}
