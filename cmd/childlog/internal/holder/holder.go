package holder

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"childlog/cmd/childlog/internal/access"
	"childlog/cmd/childlog/internal/forward"
	"childlog/cmd/childlog/internal/trunk"
)

// Options say what a holder serves. Zero fields are the defaults.
type Options struct {
	Run     forward.Runner // runs commands; required
	Handler http.Handler   // the API; nil: commands only
	Trunk   Upgraded       // answers who asks for the API as a trunk (package trunk); nil: nobody does
	Log     *slog.Logger   // never gets a content; nil: nothing is logged
	Ready   func()         // called once the socket can be reached; may be nil

	// Stopping is called when Serve begins to stop, before it waits: whatever
	// Handler keeps open for what is to come has to end now. May be nil.
	Stopping func()

	Connections int           // at a time; 1024
	Grace       time.Duration // for what is at work when Serve stops; 10 s
	Forward     forward.ServeOptions
}

// Upgraded serves a connection that left HTTP, of which ready was read already,
// until its other side ends it, ctx does, or stopping is closed and what is at
// work has ended. The connection is closed after. Errors are about the other
// side, for a log.
type Upgraded func(ctx context.Context, stopping <-chan struct{}, conn *net.UnixConn, ready []byte) error

const (
	connections = 1024
	grace       = 10 * time.Second
	headerTime  = 10 * time.Second // for a request's header to arrive
	idleTime    = 2 * time.Minute  // between requests of one connection
	headerBytes = 16 << 10
)

// Serve serves a held store on the socket in its directory until ctx ends, and
// returns once nothing of it is left: no goroutine, no connection, no socket.
// The store stays open. At most one Serve may run for a store. Errors: the
// socket could not be made, or failed; nil if ctx ended.
func Serve(ctx context.Context, held *access.Held, o Options) error {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Connections == 0 {
		o.Connections = connections
	}
	if o.Grace == 0 {
		o.Grace = grace
	}
	sock, err := listen(held.Dir(), o.Log)
	if err != nil {
		return err
	}
	work, end := context.WithCancelCause(context.WithoutCancel(ctx))
	defer end(nil)
	h := &holder{o: o, work: work, stopping: make(chan struct{})}
	mux := http.NewServeMux()
	mux.HandleFunc(forward.Path, h.upgrade(forward.Protocol, func(ctx context.Context, stopping <-chan struct{}, conn *net.UnixConn, ready []byte) error {
		return forward.Serve(ctx, stopping, conn, ready, o.Run, o.Forward)
	}))
	if o.Trunk != nil {
		mux.HandleFunc(trunk.Path, h.upgrade(trunk.Protocol, o.Trunk))
	}
	if o.Handler != nil {
		mux.Handle("/", o.Handler)
	}
	server := &http.Server{Handler: mux, ReadHeaderTimeout: headerTime, IdleTimeout: idleTime, MaxHeaderBytes: headerBytes,
		ErrorLog: slog.NewLogLogger(o.Log.Handler(), slog.LevelDebug), BaseContext: func(net.Listener) context.Context { return work }}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(&bounded{Listener: sock, room: make(chan struct{}, o.Connections)}) }()
	if o.Ready != nil {
		o.Ready()
	}
	select {
	case err = <-failed:
		failed <- nil // it was told, and has ended
	case <-ctx.Done():
	}
	h.stop()
	if o.Stopping != nil {
		o.Stopping()
	}
	err = errors.Join(err, sock.remove(), h.drain(server, end))
	if closed := <-failed; !errors.Is(closed, http.ErrServerClosed) {
		err = errors.Join(err, closed)
	}
	return err
}

// stop refuses upgrades from now on: who waits for those that were taken must
// not be met by another.
func (h *holder) stop() {
	h.mu.Lock()
	defer h.mu.Unlock()
	close(h.stopping)
}

// drain lets what is at work come to its end, and ends it after the grace.
func (h *holder) drain(server *http.Server, end context.CancelCauseFunc) error {
	timed, cancel := context.WithTimeout(context.Background(), h.o.Grace)
	defer cancel()
	late := context.AfterFunc(timed, func() { end(forward.ErrStopping) })
	defer late()
	err := server.Shutdown(timed)
	if errors.Is(err, context.DeadlineExceeded) {
		err = server.Close()
	}
	h.upgraded.Wait()
	return err
}

// holder is one run of Serve.
type holder struct {
	o        Options
	work     context.Context // of what is at work
	stopping chan struct{}
	mu       sync.Mutex // of beginning and of stopping
	upgraded sync.WaitGroup
}

// begin counts an upgraded connection, unless the holder stops.
func (h *holder) begin() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	select {
	case <-h.stopping:
		return false
	default:
	}
	h.upgraded.Add(1)
	return true
}

// upgrade takes connections that leave HTTP for another protocol.
func (h *holder) upgrade(protocol string, serve Upgraded) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost || r.Header.Get("Upgrade") != protocol {
			w.Header().Set("Upgrade", protocol)
			w.Header().Set("Connection", "Upgrade")
			refuse(w, http.StatusUpgradeRequired, "locked", "the process that holds the store speaks "+protocol+", not "+quoted(r.Header.Get("Upgrade")))
			return
		}
		if !h.begin() {
			refuse(w, http.StatusServiceUnavailable, "store_closed", "the process that holds the store is about to end")
			return
		}
		defer h.upgraded.Done()
		conn, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			h.o.Log.Warn("no upgrade", "reason", err.Error())
			return
		}
		defer conn.Close()
		mine, ok := conn.(*counted)
		if !ok {
			h.o.Log.Error("no upgrade", "reason", "the connection is not of a socket")
			return
		}
		ready, err := io.ReadAll(io.LimitReader(rw.Reader, int64(rw.Reader.Buffered())))
		if err == nil {
			err = conn.SetDeadline(time.Now().Add(headerTime))
		}
		if err == nil {
			_, err = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: "+protocol+"\r\n\r\n")
		}
		if err == nil {
			err = conn.SetDeadline(time.Time{})
		}
		if err == nil {
			err = serve(h.work, h.stopping, mine.UnixConn, ready)
		}
		if err != nil {
			h.o.Log.Info("an upgraded connection was lost", "protocol", protocol, "reason", err.Error())
		}
	}
}
