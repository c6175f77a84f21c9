package service

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"childlog/cmd/childlog/harness"
	"childlog/cmd/childlog/internal/tokens"
	"childlog/eventlog"
)

// Options say what is served.
type Options struct {
	// Use lends the store for a request, and may wait for it: whoever holds it
	// may close it in between for what needs it alone, and open it again.
	Use func(context.Context, func(*eventlog.Store) error) error
	Dir string // of the store

	On     func(*eventlog.Store) harness.Harness // nil: harness.On
	Log    *slog.Logger                          // nil: nothing is logged
	Hosts  []string                              // names beside loopback under which it is asked for
	Listen string                                // the address that is listened on, whose name is good too
	Limits Limits
	Now    func() time.Time // nil: time.Now
}

// Lend is the Use of a store that stays open for as long as it is served.
func Lend(s *eventlog.Store) func(context.Context, func(*eventlog.Store) error) error {
	return func(_ context.Context, fn func(*eventlog.Store) error) error { return fn(s) }
}

// Service answers requests about one store. Its handlers may be used
// concurrently, by several servers.
type Service struct {
	use     func(context.Context, func(*eventlog.Store) error) error
	on      func(*eventlog.Store) harness.Harness
	tokens  *tokens.Keeper
	hosts   hosts
	limits  Limits
	log     *slog.Logger
	now     func() time.Time
	metrics *metrics
	routes  map[string]route

	paces    *rates[string]     // by token
	open     *rates[netip.Addr] // of what needs no token
	failures *rates[netip.Addr] // tokens that were refused
	bodies   *semaphore.Weighted
	verifies *semaphore.Weighted

	streamMu sync.Mutex
	streams  map[string]int // by caller

	mu   sync.Mutex
	last *eventlog.Store // that harness is on; the same until the store was opened anew
	over harness.Harness

	stopOnce sync.Once
	stopping chan struct{} // closed when no stream may go on
}

// New makes a service. Errors: ErrInvalid (hosts).
func New(o Options) (*Service, error) {
	if o.Use == nil || o.Dir == "" {
		return nil, errors.New("service: a store is needed")
	}
	if o.On == nil {
		o.On = func(s *eventlog.Store) harness.Harness { return harness.On(s) }
	}
	h, err := newHosts(o.Listen, o.Hosts)
	if err != nil {
		return nil, err
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	l := o.Limits.withDefaults()
	return &Service{
		use: o.Use, on: o.On, tokens: tokens.Keep(o.Dir), hosts: h, limits: l, log: o.Log, now: o.Now,
		metrics: newMetrics(o.Now()), routes: routes(l), bodies: semaphore.NewWeighted(max(l.Bodies, harness.MaxRequest)), verifies: semaphore.NewWeighted(1),
		paces: newRates[string](l.Rate, o.Now), open: newRates[netip.Addr](l.OpenRate, o.Now), failures: newRates[netip.Addr](l.Failures, o.Now),
		streams: map[string]int{}, stopping: make(chan struct{}),
	}, nil
}

// with runs fn on the store and the harness on it.
func (s *Service) with(ctx context.Context, fn func(*eventlog.Store, harness.Harness) error) error {
	return s.use(ctx, func(store *eventlog.Store) error {
		s.mu.Lock()
		if s.last != store {
			s.last, s.over = store, s.on(store) // the one before dies with its store
		}
		h := s.over
		s.mu.Unlock()
		return fn(store, h)
	})
}

// Where a request came in.
const (
	overTCP  = "tcp"
	overUnix = "unix"
)

// Socket is the handler for peers of the store's Unix socket. Whoever serves it
// has compared their user id with its own; they are operators, and need no token.
func (s *Service) Socket() http.Handler { return s.handler(overUnix) }

// TCP is the handler for everybody else.
func (s *Service) TCP() http.Handler { return s.handler(overTCP) }

func (s *Service) handler(peer string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		rec := &record{ResponseWriter: w, begun: s.now(), method: r.Method, peer: peer}
		defer s.finish(rec, r)
		s.answer(rec, r)
	})
}

// Stop ends the streams and refuses what comes from now on; requests that are
// under way go on. It may be called more than once.
func (s *Service) Stop() { s.stopOnce.Do(func() { close(s.stopping) }) }

func (s *Service) stopped() bool {
	select {
	case <-s.stopping:
		return true
	default:
		return false
	}
}

// answer takes a request through everything that may refuse it, from what
// costs least to what costs most: no body is read and no store asked for anyone
// who is not known.
func (s *Service) answer(w *record, r *http.Request) {
	secure(w.Header())
	if len(r.TransferEncoding) > 0 {
		// It may have had a length too, which net/http drops. What a proxy in front
		// took for the body by that length is no request (RFC 9112, 6.1).
		w.Header().Set("Connection", "close")
	}
	if err := s.admit(w, r); err != nil {
		s.fail(w, err)
	}
}

func (s *Service) admit(w *record, r *http.Request) error {
	if err := checkPath(r); err != nil {
		s.metrics.refuse("path")
		return err
	}
	if w.peer == overTCP {
		local, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
		if !s.hosts.allows(r.Host, local) {
			s.metrics.refuse("host")
			return refuse(http.StatusMisdirectedRequest, "wrong_host", "the service is not known under the name of the Host header",
				"ask for localhost or the address that it listens on, or have the service started with this name as one of its hosts")
		}
	}
	if err := checkBrowser(r); err != nil {
		s.metrics.refuse("cross_site")
		return err
	}
	way, known := s.routes[r.URL.Path]
	w.route = way.path
	if known && way.public && way.allows(r.Method) {
		if ok, again := s.open.take(peerOf(r)); !ok && w.peer == overTCP {
			s.metrics.refuse("rate")
			return limited(again)
		}
		if err := checkQuery(r, way.query); err != nil {
			return err
		}
		return way.serve(s, w, r, caller{})
	}
	c := caller{role: tokens.Operator}
	if w.peer == overTCP {
		var err error
		if c, err = s.identify(w, r); err != nil {
			return err
		}
	}
	w.role, w.token = c.role, c.token
	if err := s.pace(c); err != nil {
		s.metrics.refuse("rate")
		return err
	}
	if !known {
		return refuse(http.StatusNotFound, "no_such_path", "no such path", docsHint)
	}
	if !way.allows(r.Method) {
		w.Header().Set("Allow", way.method)
		return refuse(http.StatusMethodNotAllowed, "method_not_allowed", "the path is used with "+way.method, docsHint)
	}
	if s.stopped() {
		w.Header().Set("Connection", "close")
		return stopping()
	}
	if err := checkQuery(r, way.query); err != nil {
		return err
	}
	return way.serve(s, w, r, c)
}

// secure sets what every answer has: nothing of the service may be framed,
// sniffed, cached or read by another site.
func secure(h http.Header) {
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Security-Policy", "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("X-Content-Type-Options", "nosniff")
}
