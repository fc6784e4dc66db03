package healthcheck

import (
	"bufio"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/troupe-vpp/troupe/messages"
)

// FuzzRequest: for any request the answer is JSON, with a status that load balancers know.
func FuzzRequest(f *testing.F) {
	f.Add("GET /healthz HTTP/1.1\r\nHost: n1\r\n\r\n")
	f.Add("HEAD //livez HTTP/1.0\r\n\r\n")
	f.Add("CONNECT healthz:10256 HTTP/1.1\r\nHost: x\r\n\r\n")
	f.Add("POST /healthz/../livez?%zz HTTP/1.1\r\nHost: n1\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\nabc")
	node := NewNodeHealth(NodeHealthConfig{State: func() NodeState { return NodeState{Known: true, Leaving: true} }})
	p := &port{}
	p.check.Store(&Check{Service: "a/b", Health: &messages.HealthCheck{LocalEndpoints: 2}})
	service := p.handler(func() bool { return true })
	f.Fuzz(func(t *testing.T, raw string) {
		r, err := http.ReadRequest(bufio.NewReader(strings.NewReader(raw)))
		if err != nil {
			return // net/http has answered
		}
		for name, handler := range map[string]http.Handler{"node": node, "service": service} {
			w := httptest.NewRecorder()
			handler.ServeHTTP(w, r)
			got := w.Result()
			body, err := io.ReadAll(got.Body)
			if err != nil {
				t.Fatal(err)
			}
			known := got.StatusCode == http.StatusOK || got.StatusCode == http.StatusServiceUnavailable
			if name == "service" && got.StatusCode != http.StatusOK {
				t.Errorf("service: %d, every path answers", got.StatusCode)
			}
			if known && (!json.Valid(body) || got.Header.Get("Content-Type") != "application/json") {
				t.Errorf("%s: %d %v %q", name, got.StatusCode, got.Header, body)
			}
			if !known && got.StatusCode != http.StatusNotFound && got.StatusCode/100 != 3 && r.RequestURI != "*" {
				// the multiplexer cleans paths
				t.Errorf("%s: %d %q", name, got.StatusCode, body)
			}
		}
	})
}

// FuzzParseAddress: a listen address is "ip:port" of one family, and reading its text again gives
// the same address.
func FuzzParseAddress(f *testing.F) {
	for _, text := range []string{"192.168.16.1:31000", "[::ffff:1.2.3.4]:1", "[fe80::1%eth0]:80", ":80", "1.2.3.4:0", "0.0.0.0:65536"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		addr, err := parseAddress(text)
		if err != nil {
			if !strings.Contains(err.Error(), ErrAddress.Error()) {
				t.Fatalf("%q: %v", text, err)
			}
			return
		}
		again, err := parseAddress(addr.String())
		if err != nil || again != addr || addr.Port() == 0 || (network(addr) == "tcp4") != addr.Addr().Is4() {
			t.Fatalf("%q is %v, which is read as %v, %v", text, addr, again, err)
		}
	})
}
