package service

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"path"
	"strings"
	"unicode"

	"childlog/eventlog"
)

// hosts are the names under which the service may be asked for. A page that a
// person visits can have its own name resolve to 127.0.0.1 and then talks to a
// local service as its own origin (DNS rebinding); it can't make the browser
// name another host than its own.
type hosts map[string]bool

// newHosts allows the loopback names, that of the address to listen on, and
// those given.
func newHosts(listen string, more []string) (hosts, error) {
	h := hosts{"localhost": true}
	if name, _, err := net.SplitHostPort(listen); err == nil && name != "" {
		h[strings.ToLower(name)] = true
	}
	for _, name := range more {
		if name == "" || strings.ContainsAny(name, "/@* ") || strings.Contains(name, ":") && !isIP(name) {
			return nil, fmt.Errorf("%w: host %.80q: want a name or an address without scheme and port", eventlog.ErrInvalid, name)
		}
		h[strings.TrimSuffix(strings.ToLower(name), ".")] = true
	}
	return h, nil
}

func isIP(text string) bool {
	_, err := netip.ParseAddr(text)
	return err == nil
}

// allows reports whether a Host header names this service. An address is no
// name that somebody could let resolve to something else, so that on which the
// connection came in is good, and so is loopback.
func (h hosts) allows(host string, local net.Addr) bool {
	name := host
	if n, _, err := net.SplitHostPort(host); err == nil {
		name = n
	}
	name = strings.TrimSuffix(strings.ToLower(name), ".")
	if h[name] {
		return true
	}
	ip, err := netip.ParseAddr(strings.TrimSuffix(strings.TrimPrefix(name, "["), "]"))
	if err != nil {
		return false
	}
	if ip.IsLoopback() || h[ip.String()] {
		return true
	}
	if local == nil {
		return false
	}
	here, err := netip.ParseAddrPort(local.String())
	return err == nil && here.Addr().Unmap() == ip.Unmap()
}

// checkBrowser refuses what a browser sends on behalf of another site. The
// service answers no preflight and sets no CORS header, so no other site can
// read an answer either; and no request works without a token that a browser
// would not add by itself.
func checkBrowser(r *http.Request) error {
	if site := r.Header.Get("Sec-Fetch-Site"); site != "" && site != "same-origin" && site != "none" {
		return refuse(http.StatusForbidden, "cross_site", "cross-site: the request was sent by a page of another site", "ask from a program, or from a page of this service")
	}
	if origins := r.Header.Values("Origin"); len(origins) > 0 {
		u, err := url.Parse(origins[0])
		if len(origins) > 1 || err != nil || u.Host == "" || !strings.EqualFold(u.Host, r.Host) {
			return refuse(http.StatusForbidden, "cross_site", "cross-site: the request's Origin is another site", "ask from a program, or from a page of this service")
		}
	}
	return nil
}

// checkPath refuses spellings of a path that one reader takes for another path
// than the next one: encoded slashes, dot segments, doubled slashes, control
// characters. What is left is compared with the routes byte by byte.
func checkPath(r *http.Request) error {
	p := r.URL.Path
	if r.URL.RawPath != "" || p != path.Clean(p) || strings.ContainsFunc(p, func(c rune) bool { return c == '\\' || c > unicode.MaxASCII || unicode.IsControl(c) }) {
		return refuse(http.StatusNotFound, "no_such_path", "no such path: it is not spelled plainly", docsHint)
	}
	return nil
}

const docsHint = "GET /docs describes every path, GET /openapi.json does for programs"
