package service_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"childlog/cmd/childlog/harness"
	"childlog/cmd/childlog/internal/service"
	"childlog/cmd/childlog/internal/tokens"
	"childlog/eventlog"
)

// dial opens a connection of one's own making.
func (v *served) dial(t *testing.T) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(v.url, "http://"))
	require.NoError(t, err)
	t.Cleanup(func() { conn.Close() })
	require.NoError(t, conn.SetDeadline(time.Now().Add(time.Minute)))
	return conn
}

// raw sends text and returns the status of the answer, 0 if there was none.
func (v *served) raw(t *testing.T, text string) int {
	t.Helper()
	conn := v.dial(t)
	_, _ = io.WriteString(conn, text) // it may be refused before it was sent
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return 0
	}
	resp.Body.Close()
	return resp.StatusCode
}

// goesOn requires that the service answers as ever.
func (v *served) goesOn(t *testing.T) {
	t.Helper()
	require.Equal(t, http.StatusOK, v.post("/v1/list", tokens.Auditor, `{}`).status)
}

// TestInvalidHTTP: refused, each in its connection.
func TestInvalidHTTP(t *testing.T) {
	v := serve(t, service.Options{})
	auth := "Authorization: Bearer " + v.tokens[tokens.Operator] + "\r\n"
	post := func(head, body string) string {
		return "POST /v1/list HTTP/1.1\r\nHost: localhost\r\n" + auth + "Content-Type: application/json\r\n" + head + "\r\n" + body
	}
	require.Equal(t, 200, v.raw(t, post("Content-Length: 2\r\n", "{}")), "so the others differ in one thing")
	for name, text := range map[string]string{
		"no HTTP":              "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
		"a line":               "hello\r\n\r\n",
		"HTTP/9":               "GET /healthz HTTP/9.9\r\nHost: localhost\r\n\r\n",
		"no host":              "GET /healthz HTTP/1.1\r\n\r\n",
		"two hosts":            "GET /healthz HTTP/1.1\r\nHost: localhost\r\nHost: evil\r\n\r\n",
		"blank in a name":      "GET /healthz HTTP/1.1\r\nHost: localhost\r\nX Y: 1\r\n\r\n",
		"control in a header":  "GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: a\x00b\r\n\r\n",
		"two lengths":          post("Content-Length: 2\r\nContent-Length: 3\r\n", "{}"),
		"negative length":      post("Content-Length: -2\r\n", "{}"),
		"no number of a chunk": post("Transfer-Encoding: chunked\r\n", "xyz\r\n{}\r\n0\r\n\r\n"),
		"other encoding":       post("Transfer-Encoding: gzip\r\n", "{}"),
		"a short body":         post("Content-Length: 2\r\nConnection: close\r\n", "{"),
		"HTTP/2 by force":      "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
		"a proxy's request":    "CONNECT evil:80 HTTP/1.1\r\nHost: evil:80\r\n\r\n",
		"huge headers":         "GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: " + strings.Repeat("a", 64<<10) + "\r\n\r\n",
		"many headers":         "GET /healthz HTTP/1.1\r\nHost: localhost\r\n" + strings.Repeat("X: a\r\n", 8<<10) + "\r\n",
		"a huge path":          "GET /" + strings.Repeat("a", 64<<10) + " HTTP/1.1\r\nHost: localhost\r\n\r\n",
	} {
		if name == "a short body" {
			conn := v.dial(t)
			_, err := io.WriteString(conn, text)
			require.NoError(t, err)
			require.NoError(t, conn.(*net.TCPConn).CloseWrite())
			resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
			require.NoError(t, err)
			require.Equal(t, 400, resp.StatusCode, name)
			continue
		}
		status := v.raw(t, text)
		require.True(t, status == 0 || status >= 400 && status < 500 || status == 501 || status == 505, "%s: %d", name, status)
	}
	v.goesOn(t)
	require.NotContains(t, v.log.String(), "panic")
}

// TestNothingIsSmuggled: of a request with a length and pieces a proxy in front
// may take another part for the next request than this service does. So none
// follows on the connection of one that came in pieces.
func TestNothingIsSmuggled(t *testing.T) {
	v := serve(t, service.Options{})
	auth := "Authorization: Bearer " + v.tokens[tokens.Operator] + "\r\n"
	for _, head := range []string{"POST /v1/list HTTP/1.1\r\nContent-Type: application/json\r\n" + auth, "GET /healthz HTTP/1.1\r\n", "POST /v1/list HTTP/1.1\r\n"} {
		conn := v.dial(t)
		_, err := io.WriteString(conn, head+"Host: localhost\r\nContent-Length: 7\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\nGET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
		require.NoError(t, err)
		answers, _ := io.ReadAll(conn) // the end of the connection may be a reset
		require.Equal(t, 1, strings.Count(string(answers), "HTTP/1.1 "), "%s", answers)
	}
}

// TestPathTricks: a path is spelled plainly or is none.
func TestPathTricks(t *testing.T) {
	v := serve(t, service.Options{})
	auth := "Authorization: Bearer " + v.tokens[tokens.Operator] + "\r\n"
	for _, path := range []string{"//healthz", "/./healthz", "/v1/../healthz", "/healthz/", "/%68ealthz%2f", "/v1%2flist", "/v1/%2e%2e/healthz", "/healthz%00", "/healthz%0a",
		"/HEALTHZ", "/healthz;x", "/v1/list%20", "/\\healthz", "/healthz\\", "/..", "/%5c..%5c", "/docs/../metrics", "/docs/%2e%2e/metrics", "*", "/", "/v1", "/v1/", "/debug/pprof/", "/docs/style.css/../../metrics", "/metrics\u00e9"} {
		status := v.raw(t, "GET "+path+" HTTP/1.1\r\nHost: localhost\r\n"+auth+"\r\n")
		require.Contains(t, []int{400, 404}, status, path)
	}
	for _, method := range []string{"GET", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "FOO"} {
		require.Equal(t, 405, v.do(method, "/v1/list", v.tokens[tokens.Operator], "", nil).status, method)
	}
	require.Equal(t, "POST", v.do("GET", "/v1/list", v.tokens[tokens.Operator], "", nil).header.Get("Allow"))
	require.Equal(t, 405, v.do("HEAD", harness.FollowPath, v.tokens[tokens.Operator], "", nil).status)
	require.Equal(t, 200, v.do("HEAD", "/healthz", "", "", nil).status)
	require.Equal(t, 200, v.raw(t, "GET http://localhost/healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"), "the absolute form (RFC 9112, 3.2.2)")
	require.Equal(t, 421, v.raw(t, "GET http://evil/healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"), "whose host counts")
}

// TestBrowsersOfOtherSites: a page that a person visits gets nothing done.
func TestBrowsersOfOtherSites(t *testing.T) {
	v := serve(t, service.Options{Hosts: []string{"store.example"}})
	id := v.root()
	before := v.store.Durable()
	addr := strings.TrimPrefix(v.url, "http://")
	body := `{"session":"` + id + `","events":[{"type":"user/message","content_text":"x"}]}`
	for name, change := range map[string]func(*http.Request){
		"a cross-site fetch":     func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") },
		"of the same registrar":  func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "same-site") },
		"another origin":         func(r *http.Request) { r.Header.Set("Origin", "https://evil.example") },
		"no origin at all":       func(r *http.Request) { r.Header.Set("Origin", "null") },
		"two origins":            func(r *http.Request) { r.Header["Origin"] = []string{v.url, "https://evil.example"} },
		"another port":           func(r *http.Request) { r.Header.Set("Origin", "http://127.0.0.1:1") },
		"DNS rebinding":          func(r *http.Request) { r.Host = "evil.example:" + strings.Split(addr, ":")[1] },
		"rebinding, its origin":  func(r *http.Request) { r.Host = "evil.example"; r.Header.Set("Origin", "http://evil.example") },
		"a name that ends alike": func(r *http.Request) { r.Host = "evil.localhost" },
		"a name that begins so":  func(r *http.Request) { r.Host = "localhost.evil.example" },
		"an address like a name": func(r *http.Request) { r.Host = "127.0.0.1.evil.example" },
		"another address":        func(r *http.Request) { r.Host = "192.0.2.1" },
		"any address":            func(r *http.Request) { r.Host = "0.0.0.0" },
	} {
		a := v.do(http.MethodPost, "/v1/append", v.tokens[tokens.Operator], body, change)
		require.Contains(t, []int{403, 421}, a.status, name)
		require.Contains(t, []string{"cross_site", "wrong_host"}, a.code(t), name)
	}
	require.Equal(t, before, v.store.Durable())
	a := v.do(http.MethodOptions, "/v1/append", "", "", func(r *http.Request) {
		r.Header.Set("Origin", "https://evil.example")
		r.Header.Set("Access-Control-Request-Method", "POST")
	})
	require.Equal(t, 403, a.status, "a preflight")
	for key := range a.header {
		require.NotContains(t, key, "Access-Control")
	}
	for name, change := range map[string]func(*http.Request){
		"its own page":    func(r *http.Request) { r.Header.Set("Origin", v.url); r.Header.Set("Sec-Fetch-Site", "same-origin") },
		"typed by hand":   func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "none") },
		"localhost":       func(r *http.Request) { r.Host = "LOCALHOST:1" },
		"loopback, IPv6":  func(r *http.Request) { r.Host = "[::1]:80" },
		"the named host":  func(r *http.Request) { r.Host = "store.example" },
		"with a last dot": func(r *http.Request) { r.Host = "store.example.:7431" },
	} {
		require.Equal(t, 200, v.do(http.MethodPost, "/v1/list", v.tokens[tokens.Operator], `{}`, change).status, name)
	}
}

// TestTokenGuessing: after a few attempts the answer is 429 and the connection
// ends; a good token still comes in; no token is in the log.
func TestTokenGuessing(t *testing.T) {
	v := serve(t, service.Options{Limits: service.Limits{Failures: 0.001}})
	guess := "clt_" + strings.Repeat("g", 43)
	statuses := map[int]int{}
	for range 20 {
		a := v.do(http.MethodPost, "/v1/list", guess, `{}`, nil)
		statuses[a.status]++
		if a.status == http.StatusTooManyRequests {
			require.NotEmpty(t, a.header.Get("Retry-After"))
			require.Equal(t, "rate_limited", a.code(t))
		}
	}
	require.Equal(t, map[int]int{401: 1, 429: 19}, statuses)
	v.goesOn(t)
	for _, header := range []string{"", "Basic " + v.tokens[tokens.Operator], "Bearer", "Bearer  " + v.tokens[tokens.Operator], v.tokens[tokens.Operator]} {
		a := v.do(http.MethodPost, "/v1/list", "", `{}`, func(r *http.Request) { r.Header.Set("Authorization", header) })
		require.Equal(t, http.StatusTooManyRequests, a.status, header)
	}
	a := v.do(http.MethodPost, "/v1/list", v.tokens[tokens.Operator], `{}`, func(r *http.Request) { r.Header.Add("Authorization", "Bearer "+guess) })
	require.Equal(t, http.StatusTooManyRequests, a.status, "two headers")
	require.NotContains(t, v.log.String(), "clt_")
	require.Contains(t, v.get("/metrics", tokens.Auditor).body, `childlog_refused_total{reason="token"}`)
}

// TestRates: of one token, and of an address that shows none.
func TestRates(t *testing.T) {
	v := serve(t, service.Options{Limits: service.Limits{Rate: 0.001, OpenRate: 0.001}})
	require.Equal(t, 200, v.post("/v1/list", tokens.Auditor, `{}`).status)
	a := v.post("/v1/list", tokens.Auditor, `{}`)
	require.Equal(t, 429, a.status)
	require.Equal(t, "1000", a.header.Get("Retry-After"))
	require.Equal(t, 200, v.post("/v1/list", tokens.Harness, `{}`).status, "another token has its own")
	require.Equal(t, 200, v.get("/healthz", "").status)
	require.Equal(t, 429, v.get("/docs", "").status)
}

// TestLargeBodies: told to be large, or endless, they are refused, and what is
// read of them is bounded.
func TestLargeBodies(t *testing.T) {
	v := serve(t, service.Options{})
	id := v.root()
	auth := "POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nAuthorization: Bearer " + v.tokens[tokens.Operator] + "\r\n"
	require.Equal(t, 413, v.raw(t, fmt.Sprintf(auth, "/v1/append")+"Content-Length: 104857600\r\n\r\n"), "before a byte of it came")
	require.Equal(t, 413, v.raw(t, fmt.Sprintf(auth, "/v1/show")+"Content-Length: 1048577\r\n\r\n"))
	require.Equal(t, 413, v.raw(t, fmt.Sprintf(auth, "/v1/show")+"Expect: 100-continue\r\nContent-Length: 1048577\r\n\r\n"))

	conn := v.dial(t)
	_, err := io.WriteString(conn, fmt.Sprintf(auth, "/v1/show")+"Transfer-Encoding: chunked\r\n\r\n")
	require.NoError(t, err)
	chunk := "10000\r\n" + strings.Repeat(" ", 1<<16) + "\r\n"
	sent := 0
	for ; err == nil && sent < 1<<30; sent += 1 << 16 { // endless
		_, err = io.WriteString(conn, chunk)
	}
	require.Error(t, err, "it was read for ever")
	require.Less(t, sent, 64<<20)

	// The largest content that a store takes goes through, byte for byte.
	if !testing.Short() {
		text := `{"session":"` + id + `","events":[{"type":"user/message","content_text":"` + strings.Repeat("a", eventlog.MaxContent) + `"}]}`
		require.Equal(t, 200, v.post("/v1/append", tokens.Harness, text).status)
	}
	v.goesOn(t)
}

// TestSlowClients: who does not get on with it is cut off, each kind by its own
// limit, which the others do not come near.
func TestSlowClients(t *testing.T) {
	const short = 50 * time.Millisecond
	for name, c := range map[string]struct {
		limits service.Limits
		text   string // %s is the token
		want   string
	}{
		"nothing":       {service.Limits{HeaderTime: short}, "", ""},
		"half a header": {service.Limits{HeaderTime: short}, "POST /v1/show HTTP/1.1\r\nHost: localhost\r\n", ""},
		"half a body": {service.Limits{BodyTime: short}, "POST /v1/show HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nAuthorization: Bearer %s\r\nContent-Length: 100\r\n\r\n{",
			"slow_request"},
		"idle": {service.Limits{IdleTime: short}, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n", "alive"},
	} {
		v := serve(t, service.Options{Limits: c.limits})
		conn := v.dial(t)
		_, _ = io.WriteString(conn, strings.Replace(c.text, "%s", v.tokens[tokens.Operator], 1)) // on a slow machine the time was over before
		b, err := io.ReadAll(conn)                                                               // until the other side ends it
		require.NotErrorIs(t, err, os.ErrDeadlineExceeded, "%s: the minute of the test is over", name)
		require.Contains(t, string(b), c.want, name)
		if name == "half a body" {
			require.Contains(t, string(b), "408 Request Timeout")
		}
		require.NotContains(t, v.log.String(), "panic")
	}
}

// TestManyConnections: beyond the limits they are closed at once, and others
// come in when those are gone.
func TestManyConnections(t *testing.T) {
	v := serve(t, service.Options{Limits: service.Limits{Connections: 8, PeerConnections: 4}})
	var open []net.Conn
	for range 4 {
		conn := v.dial(t)
		_, err := io.WriteString(conn, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
		require.NoError(t, err)
		_, err = http.ReadResponse(bufio.NewReader(conn), nil)
		require.NoError(t, err)
		open = append(open, conn)
	}
	for range 10 {
		require.Zero(t, v.raw(t, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"))
	}
	for _, conn := range open {
		conn.Close()
	}
	require.Eventually(t, func() bool {
		return v.raw(t, "GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n") == 200
	}, 10*time.Second, 5*time.Millisecond)
}

// TestAddresses: clear text is for loopback.
func TestAddresses(t *testing.T) {
	for listen, good := range map[string]bool{"127.0.0.1:0": true, "[::1]:0": true, "localhost:0": true, "127.8.8.8:1": true,
		":0": false, "0.0.0.0:0": false, "[::]:0": false, "192.0.2.1:80": false, "example.org:80": false, "localhost": false, "": false} {
		err := service.Address{Listen: listen}.Check()
		require.Equal(t, good, err == nil, listen)
		if !good {
			require.ErrorIs(t, err, eventlog.ErrInvalid, listen)
		}
	}
	require.NoError(t, service.Address{Listen: "0.0.0.0:0", CertFile: "c", KeyFile: "k"}.Check())
	require.Error(t, service.Address{Listen: "127.0.0.1:0", CertFile: "c"}.Check())
}
