package harness

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"path/filepath"
	"strings"
	"time"

	"childlog/cmd/childlog/internal/forward"
	"childlog/eventlog"
)

// Socket is the name of the Unix socket in the directory of a store, on which
// whoever holds it serves it.
const Socket = forward.Socket

// Options say how to reach a service. The zero value is for a store on this
// machine, whose socket asks for no token.
type Options struct {
	// Token is sent as the bearer of every request. It goes to other machines
	// over https only, unless Plain says otherwise.
	Token string
	// TLS is the configuration for https; nil: the system's roots.
	TLS *tls.Config
	// Plain permits a token over http to other machines, such as where a proxy
	// of one's own encrypts.
	Plain bool
}

// Bounds of a client.
const (
	// poolSize is how many idle connections are kept: as many concurrent callers
	// reuse theirs, and more cost a connection each.
	poolSize = 256
	// idleTimeout is less than a service keeps an idle connection, so that the
	// client is the one to give it up and no request goes into the void.
	idleTimeout = 30 * time.Second
	dialTimeout = 10 * time.Second
	// maxAnswer bounds an answer, bytes: the largest are trees and lists of a
	// store with very many sessions.
	maxAnswer = 256 << 20
)

// Dial finds the service of a store and connects to it once, to know that
// somebody is there. target is one of
//
//	unix:DIR            the store at DIR, by the socket of whoever holds it
//	http://HOST:PORT    a service on this machine, or behind a proxy of one's own
//	https://HOST:PORT   a service anywhere
//
// ctx bounds the connecting, not the client. Errors: ErrInvalid for a target or
// a token that can't be used so; ErrStoreClosed, with the cause, where nobody
// answers.
func Dial(ctx context.Context, target string, o Options) (*Client, error) {
	c := &Client{token: o.Token, most: maxAnswer}
	dialer := &net.Dialer{Timeout: dialTimeout, KeepAlive: 15 * time.Second}
	transport := &http.Transport{
		DialContext:         dialer.DialContext,
		TLSClientConfig:     o.TLS.Clone(),
		TLSHandshakeTimeout: dialTimeout,
		MaxIdleConns:        poolSize,
		MaxIdleConnsPerHost: poolSize,
		IdleConnTimeout:     idleTimeout,
		DisableCompression:  true, // most answers are smaller than what it costs
		ForceAttemptHTTP2:   true,
	}
	if dir, ok := strings.CutPrefix(target, "unix:"); ok {
		abs, err := filepath.Abs(dir)
		if err != nil {
			return nil, err
		}
		c.base, c.target = "http://childlog", "unix:"+abs
		transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) { return dialStore(ctx, abs) }
		c.trunk = &trunkLine{dir: abs, most: &c.most, change: make(chan struct{}, 1)}
	} else if err := c.remote(target, &o); err != nil {
		return nil, err
	}
	c.http = &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	c.ctx, c.stop = context.WithCancel(context.Background())
	conn, err := c.connect(ctx, transport)
	if err != nil {
		c.stop()
		return nil, unreachable(c.target, err)
	}
	return c, conn.Close()
}

// remote reads an address.
func (c *Client) remote(target string, o *Options) error {
	u, err := url.Parse(target)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return fmt.Errorf("%w: target %.100q: want unix:DIR, http://HOST:PORT or https://HOST:PORT", eventlog.ErrInvalid, target)
	}
	if u.Scheme == "http" && o.Token != "" && !o.Plain && !loopback(u.Hostname()) {
		return fmt.Errorf("%w: target %s: a token would go over the network in clear; use https", eventlog.ErrInvalid, u.Redacted())
	}
	c.base = strings.TrimSuffix(u.String(), "/")
	c.target = c.base
	return nil
}

func loopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.Unmap().IsLoopback()
}

// connect makes one connection.
func (c *Client) connect(ctx context.Context, t *http.Transport) (net.Conn, error) {
	u, err := url.Parse(c.base)
	if err != nil {
		return nil, err
	}
	host := u.Host
	if u.Port() == "" {
		host = net.JoinHostPort(u.Hostname(), u.Scheme)
	}
	return t.DialContext(ctx, "tcp", host)
}

// dialStore connects to whoever holds the store at dir. A process of another
// user is nobody: it would be shown what is stored, and could answer anything.
func dialStore(ctx context.Context, dir string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	conn, err := forward.Connect(ctx, dir)
	if err != nil {
		return nil, err
	}
	return conn, nil
}

// unreachable says that nobody answered. Nothing was sent.
func unreachable(target string, err error) error {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return fmt.Errorf("%w: nobody serves %s: %w", eventlog.ErrStoreClosed, target, err)
}
