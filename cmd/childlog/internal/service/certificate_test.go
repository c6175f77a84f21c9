package service_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"childlog/cmd/childlog/internal/service"
	"childlog/eventlog"
)

// pair is a certificate with its key, as PEM.
type pair struct {
	cert      *x509.Certificate
	text, key []byte
}

func newPair(t *testing.T, serial int64) pair {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(serial), NotAfter: time.Now().Add(time.Hour), DNSNames: []string{"localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	require.NoError(t, err)
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	cert, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	return pair{cert, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER})}
}

// put replaces a file as those do who renew certificates: under another name first.
func put(t *testing.T, path string, text []byte) {
	require.NoError(t, os.WriteFile(path+".new", text, 0o600))
	require.NoError(t, os.Rename(path+".new", path))
}

func addressIn(t *testing.T, p pair) service.Address {
	dir := t.TempDir()
	a := service.Address{Listen: "127.0.0.1:0", CertFile: filepath.Join(dir, "cert"), KeyFile: filepath.Join(dir, "key")}
	put(t, a.CertFile, p.text)
	put(t, a.KeyFile, p.key)
	return a
}

// TestTLS: with a certificate it speaks TLS 1.3 and HTTP/1.1, and nothing else.
func TestTLS(t *testing.T) {
	p := newPair(t, 1)
	v := serveAt(t, service.Options{}, addressIn(t, p))
	pool := x509.NewCertPool()
	pool.AddCert(p.cert)
	transport := v.client.Transport.(*http.Transport)
	transport.TLSClientConfig = &tls.Config{RootCAs: pool}
	transport.ForceAttemptHTTP2 = true
	v.goesOn(t)
	resp, err := v.client.Get(v.url + "/healthz")
	require.NoError(t, err)
	resp.Body.Close()
	require.Equal(t, 1, resp.ProtoMajor)
	_, err = tls.Dial("tcp", strings.TrimPrefix(v.url, "https://"), &tls.Config{RootCAs: pool, MaxVersion: tls.VersionTLS12})
	require.Error(t, err)
	plain, err := http.Get("http" + strings.TrimPrefix(v.url, "https") + "/healthz")
	if err == nil {
		plain.Body.Close()
		require.Equal(t, 400, plain.StatusCode)
	}
}

// TestTheCertificateIsRenewed: files that are replaced count from the next
// connection on; a pair that does not load is told once, and the one before it
// goes on.
func TestTheCertificateIsRenewed(t *testing.T) {
	first, second := newPair(t, 1), newPair(t, 2)
	a := addressIn(t, first)
	v := serveAt(t, service.Options{}, a)
	serial := func() int64 {
		conn, err := tls.Dial("tcp", strings.TrimPrefix(v.url, "https://"), &tls.Config{InsecureSkipVerify: true}) // which one it is is what is looked at
		require.NoError(t, err)
		defer conn.Close()
		return conn.ConnectionState().PeerCertificates[0].SerialNumber.Int64()
	}
	told := func() int { return strings.Count(v.log.String(), "certificate was not renewed") }
	require.EqualValues(t, 1, serial())
	put(t, a.CertFile, second.text) // whose key is not there yet
	for range 3 {
		require.EqualValues(t, 1, serial())
	}
	require.Equal(t, 1, told())
	put(t, a.KeyFile, second.key)
	require.EqualValues(t, 2, serial())
	require.Contains(t, v.log.String(), "certificate was renewed")
	require.NoError(t, os.Remove(a.KeyFile))
	for range 3 {
		require.EqualValues(t, 2, serial())
	}
	require.Equal(t, 2, told())
	put(t, a.CertFile, []byte("nonsense"))
	put(t, a.KeyFile, first.key)
	require.EqualValues(t, 2, serial())
	require.Equal(t, 3, told())
	put(t, a.CertFile, first.text)
	require.EqualValues(t, 1, serial())
	require.Equal(t, 3, told())
	require.NotContains(t, v.log.String(), "PRIVATE")
}

// TestACertificateThatDoesNotLoad keeps the service from beginning.
func TestACertificateThatDoesNotLoad(t *testing.T) {
	a := addressIn(t, pair{text: []byte("x"), key: []byte("y")})
	v := serve(t, service.Options{})
	_, err := v.service.Listen(t.Context(), a)
	require.ErrorIs(t, err, eventlog.ErrInvalid)
}
