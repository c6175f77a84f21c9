package service

import (
	"time"

	"childlog/cmd/childlog/harness"
)

// Limits bounds what clients may take. Zero fields mean the defaults, which
// [Limits.withDefaults] names.
type Limits struct {
	Connections     int // over TCP, all together
	PeerConnections int // of one address
	Streams         int // of events, over TCP and the socket together
	CallerStreams   int // of one token; the peers of the socket are one caller

	HeaderBytes int   // of a request
	BodyBytes   int64 // of a request that holds no document as large as a batch
	Bodies      int64 // bytes of large bodies that are in memory at a time

	HeaderTime time.Duration // until the header is whole
	BodyTime   time.Duration // until the body is whole, from the beginning on
	WorkTime   time.Duration // for an operation
	VerifyTime time.Duration // for a verification, which reads the whole store
	WriteTime  time.Duration // for an answer to be taken, and each piece of a stream
	IdleTime   time.Duration // between requests
	Heartbeat  time.Duration // of a stream without events
	Recheck    time.Duration // how often a stream's token is looked at
	Turn       time.Duration // after which a stream lets go of the store for a moment

	Rate     float64 // requests a second of one token
	OpenRate float64 // requests a second of one address that need no token
	Failures float64 // a second of one address that are told 401; more are told 429
}

// Bursts that the rates allow at a time, in seconds of the rate.
const burstSeconds = 2

// maxPeers bounds how many addresses are remembered for their rates.
const maxPeers = 4096

// withDefaults fills in what was left out.
func (l Limits) withDefaults() Limits {
	def(&l.Connections, 1024)
	def(&l.PeerConnections, 512) // on loopback all clients are one address
	def(&l.Streams, 256)
	def(&l.CallerStreams, 64)
	def(&l.HeaderBytes, 16<<10)
	def(&l.BodyBytes, 1<<20)
	def(&l.Bodies, 2*harness.MaxRequest)
	def(&l.HeaderTime, 10*time.Second)
	def(&l.BodyTime, time.Minute)
	def(&l.WorkTime, time.Minute)
	def(&l.VerifyTime, 30*time.Minute)
	def(&l.WriteTime, 30*time.Second)
	def(&l.IdleTime, 2*time.Minute)
	def(&l.Heartbeat, 15*time.Second)
	def(&l.Recheck, time.Second)
	def(&l.Turn, 2*time.Second)
	def(&l.Rate, 20_000) // more than a store on a small machine takes; it stops what runs away
	def(&l.OpenRate, 50)
	def(&l.Failures, 1)
	return l
}

func def[T comparable](field *T, value T) {
	if *field == *new(T) {
		*field = value
	}
}
