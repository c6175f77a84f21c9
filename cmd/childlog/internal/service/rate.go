package service

import (
	"math"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// rates holds a rate limit for each of many callers, and forgets those that
// have not been here for so long that their limit is whole again.
type rates[K comparable] struct {
	limit rate.Limit
	burst int
	now   func() time.Time

	mu   sync.Mutex
	each map[K]*rate.Limiter
}

// newRates limits every caller to a number a second. Negative: no limit.
func newRates[K comparable](perSecond float64, now func() time.Time) *rates[K] {
	return &rates[K]{limit: rate.Limit(perSecond), burst: max(1, int(math.Ceil(perSecond*burstSeconds))), now: now, each: map[K]*rate.Limiter{}}
}

// take reports whether the caller may go on, and else when to come again.
func (r *rates[K]) take(who K) (ok bool, again time.Duration) {
	if r.limit < 0 {
		return true, 0
	}
	now := r.now()
	r.mu.Lock()
	l := r.each[who]
	if l == nil {
		if len(r.each) >= maxPeers {
			r.forget(now)
		}
		l = rate.NewLimiter(r.limit, r.burst)
		r.each[who] = l
	}
	r.mu.Unlock()
	if l.AllowN(now, 1) {
		return true, 0
	}
	return false, time.Duration(float64(time.Second) / float64(r.limit))
}

// forget drops the callers that could begin anew without a difference. If all
// are busy they all begin anew: memory stays bounded, and a flood from so many
// addresses is held by the limit on connections.
func (r *rates[K]) forget(now time.Time) {
	for k, l := range r.each {
		if l.TokensAt(now) >= float64(r.burst) {
			delete(r.each, k)
		}
	}
	if len(r.each) >= maxPeers {
		clear(r.each)
	}
}
