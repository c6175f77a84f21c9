package service

import (
	"net"
	"net/netip"
	"sync"
)

// gate is a listener that accepts a bounded number of connections, in all and
// of one address. What is beyond is closed at once, before it is read or, over
// TLS, shaken hands with: a flood costs an accept each.
type gate struct {
	net.Listener
	most, peerMost int
	metrics        *metrics

	mu    sync.Mutex
	peers map[netip.Addr]int
}

func newGate(l net.Listener, limits Limits, m *metrics) *gate {
	return &gate{Listener: l, most: limits.Connections, peerMost: limits.PeerConnections, metrics: m, peers: map[netip.Addr]int{}}
}

// Accept waits for the next connection that may come in.
func (g *gate) Accept() (net.Conn, error) {
	for {
		c, err := g.Listener.Accept()
		if err != nil {
			return nil, err
		}
		peer := addrOf(c.RemoteAddr())
		if !g.enter(peer) {
			g.metrics.refuse("connections")
			_ = c.Close()
			continue
		}
		return &admitted{Conn: c, leave: sync.OnceFunc(func() { g.leave(peer) })}, nil
	}
}

func (g *gate) enter(peer netip.Addr) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.peers[peer] >= g.peerMost || !g.metrics.connections.take(g.most) {
		return false
	}
	g.peers[peer]++
	return true
}

func (g *gate) leave(peer netip.Addr) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.peers[peer]--; g.peers[peer] == 0 {
		delete(g.peers, peer)
	}
	g.metrics.connections.give()
}

// admitted is a connection that is counted until it is closed.
type admitted struct {
	net.Conn
	leave func()
}

func (c *admitted) Close() error {
	c.leave()
	return c.Conn.Close()
}

// addrOf is the address of a peer without its port. IPv6 addresses are taken
// by their /64, which is what one customer of a network has.
func addrOf(a net.Addr) netip.Addr {
	ap, err := netip.ParseAddrPort(a.String())
	if err != nil {
		return netip.Addr{} // all others together
	}
	return peerAddr(ap.Addr())
}

func peerAddr(a netip.Addr) netip.Addr {
	a = a.Unmap().WithZone("")
	if a.Is6() && !a.IsLoopback() {
		if p, err := a.Prefix(64); err == nil {
			return p.Addr()
		}
	}
	return a
}
