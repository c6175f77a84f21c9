package service

import (
	"errors"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"childlog/cmd/childlog/internal/tokens"
)

// caller is who asks: a token that was checked, or a peer of the Unix socket,
// whose user id package holder compared with its own.
type caller struct {
	role  tokens.Role
	token string // id; "" for a peer of the socket
}

// identify finds out who sends a request over TCP.
//
// A failed attempt costs its address one of few, and beyond them is answered
// with 429 and a closed connection, so that guessing costs a connection each. A
// good token always comes in: on loopback all clients share one address, and
// one with an old token must not keep the others out. It can't be guessed
// anyway, however many attempts there are (see package tokens).
func (s *Service) identify(w *record, r *http.Request) (caller, error) {
	token, err := s.bearer(r)
	if err == nil {
		return caller{role: token.Role, token: token.ID}, nil
	}
	if !errors.Is(err, tokens.ErrRefused) {
		s.log.Error("tokens can't be read", "error", traced(err))
		return caller{}, &refusal{status: http.StatusServiceUnavailable, code: "tokens_unreadable",
			message: "the store's tokens can't be read, so nobody is admitted", hint: "whoever runs the service has to mend it; its log says more"}
	}
	s.metrics.refuse("token")
	if ok, again := s.failures.take(peerOf(r)); !ok {
		w.Header().Set("Connection", "close")
		return caller{}, &refusal{status: http.StatusTooManyRequests, code: "rate_limited", message: "too many requests without a valid token", hint: "come again later, with a token", again: again}
	}
	return caller{}, refuse(http.StatusUnauthorized, "unauthorized", "unauthorized: no valid token: it is missing, was revoked or has expired",
		"send `Authorization: Bearer TOKEN`, with a token that whoever runs the service makes")
}

// bearer reads the one Authorization header (RFC 6750, 2.1). A token in a query
// or a cookie is none: the first is written to logs, the second is sent by
// browsers for other sites.
func (s *Service) bearer(r *http.Request) (tokens.Token, error) {
	values := r.Header.Values("Authorization")
	if len(values) != 1 {
		values = []string{""}
	}
	scheme, secret, _ := strings.Cut(values[0], " ")
	if !strings.EqualFold(scheme, "Bearer") {
		secret = ""
	}
	return s.tokens.Check(secret, s.now())
}

// still reports whether a caller may go on with what lasts longer than a request.
func (s *Service) still(c caller) bool {
	return c.token == "" || s.tokens.Still(c.token, s.now()) == nil
}

// peerOf is the address that a request came from.
func peerOf(r *http.Request) netip.Addr {
	ap, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Addr{}
	}
	return peerAddr(ap.Addr())
}

// pace holds a caller to its rate. Peers of the socket have none: they could
// read the files as well.
func (s *Service) pace(c caller) error {
	if c.token == "" {
		return nil
	}
	if ok, again := s.paces.take(c.token); !ok {
		return limited(again)
	}
	return nil
}

func limited(again time.Duration) error {
	return &refusal{status: http.StatusTooManyRequests, code: "rate_limited", message: "more requests than one caller may send", hint: "come again after the time of Retry-After", again: again}
}
