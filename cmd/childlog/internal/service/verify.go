package service

import (
	"context"
	"errors"
	"net/http"
	"time"
)

// verification makes of the operation verify what a service can afford: it reads
// the whole store with all processors, the longer the larger that is. One is
// done at a time, others are refused, and it ends when its client leaves, the
// service stops, its token is gone, or the store has to be opened anew, for which
// everybody would wait until it is done.
func verification(way route, most time.Duration) route {
	verify := way.run
	way.time = most
	way.run = func(s *Service, ctx context.Context, c caller, body []byte) ([]byte, error) {
		if !s.verifies.TryAcquire(1) {
			return nil, &refusal{status: http.StatusServiceUnavailable, code: "busy", message: "a verification is under way, and one is done at a time", hint: "repeat the request when it is done", again: 5 * time.Second}
		}
		defer s.verifies.Release(1)
		ctx, cancel := context.WithCancelCause(ctx)
		watched := make(chan struct{})
		go func() {
			defer close(watched)
			s.watch(ctx, c, cancel)
		}()
		answer, err := verify(s, ctx, c, body)
		if why := context.Cause(ctx); err != nil && why != nil && !errors.Is(why, ctx.Err()) {
			err = why
		}
		cancel(nil)
		<-watched
		return answer, err
	}
	return way
}

// watch ends what is done for a caller when it may not go on, and returns when
// ctx ends.
func (s *Service) watch(ctx context.Context, c caller, end context.CancelCauseFunc) {
	look := time.NewTicker(s.limits.Recheck)
	defer look.Stop()
	was := false
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.stopping:
			end(errStopping)
			return
		case <-look.C:
		}
		writable := s.writable()
		switch {
		case !s.still(c):
			end(refuse(http.StatusUnauthorized, "unauthorized", "unauthorized: "+errTokenGone.Error(), "verify again with a new token"))
		case was && !writable:
			end(errBusy)
		}
		was = writable
	}
}

// writable reports whether the store that was used last takes appends.
func (s *Service) writable() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last != nil && s.last.Writable() == nil
}
