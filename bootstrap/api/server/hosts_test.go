package server_test

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/troupe-vpp/troupe/bootstrap/api/apitest"
	"github.com/troupe-vpp/troupe/bootstrap/api/server"
)

// TestHosts: a page of another site cannot read the state of the agent. Neither its own DNS name
// with the address of the agent nor its own origin helps. Probes and scrapes by address, by
// loopback names and by allowed names are answered.
func TestHosts(t *testing.T) {
	var refused []server.Refusal
	allowed := []string{"shop-a", "Troupe.Example.COM."}
	server := server.New(apitest.New(1), server.Config{AllowedHosts: allowed, Refused: func(r server.Refusal) { refused = append(refused, r) }}, quiet())
	for _, tt := range []struct {
		host, origin string
		code         int
		want         string
	}{
		{host: "127.0.0.1:9990", code: 200},
		{host: "127.0.0.1", code: 200},
		{host: "192.168.16.1:9990", code: 200}, // kubelet, Prometheus, a load balancer
		{host: "[2001:db8::1]:9990", code: 200},
		{host: "[2001:db8::1]", code: 200},
		{host: "[fe80::1%25eth0]:9990", code: 200},
		{host: "localhost:9990", code: 200},
		{host: "LocalHost.", code: 200},
		{host: "shop-a:9990", code: 200},
		{host: "troupe.example.com:443", code: 200},
		{host: "", code: 200}, // HTTP/1.0: no browser
		{host: "rebind.example:9990", code: 403, want: `host \"rebind.example\" is not allowed: use an address, localhost or the name of the node, or start the agent with --http-allowed-hosts`},
		{host: "localhost.rebind.example", code: 403, want: `host \"localhost.rebind.example\" is not allowed`},
		{host: "127.0.0.1.rebind.example", code: 403, want: "is not allowed"},
		{host: "2130706433", code: 403, want: "is not allowed"},
		{host: "shop-b", code: 403, want: `host \"shop-b\" is not allowed`},
		{host: "::1", code: 200},
		{host: "a:b:c", code: 403, want: "is not allowed"},
		{host: "127.0.0.1:9990", origin: "http://127.0.0.1:9990", code: 200},
		{host: "LOCALHOST:9990", origin: "http://localhost:9990", code: 200},
		// behind a proxy that replaces the host
		{host: "127.0.0.1:9990", origin: "https://troupe.example.com", code: 200},
		{host: "[::1]:9990", origin: "http://[0:0::1]:9990", code: 200},
		{host: "127.0.0.1:9990", origin: "http://evil.example", code: 403, want: `origin \"http://evil.example\" is not allowed: a page of another site asks`},
		{host: "127.0.0.1:9990", origin: "http://203.0.113.6", code: 403, want: "origin"},
		{host: "127.0.0.1:9990", origin: "http://localhost:3000", code: 403, want: "origin"},
		{host: "127.0.0.1:9990", origin: "null", code: 403, want: "origin"},
		{host: "127.0.0.1:9990", origin: "http://[", code: 403, want: "origin"},
	} {
		for _, target := range []string{"/api/v1/services", "/api/v1/trace?follow=false", "/livez"} {
			refused = nil
			r := httptest.NewRequest(http.MethodGet, target, nil)
			r.Host = tt.host
			if tt.origin != "" {
				r.Header.Set("Origin", tt.origin)
			}
			w := httptest.NewRecorder()
			server.Handler(false).ServeHTTP(w, r)
			body, _ := io.ReadAll(w.Result().Body)
			if w.Code != tt.code || !strings.Contains(string(body), tt.want) || strings.Count(string(body), "\n") > 3 && tt.code == 403 {
				t.Errorf("host %q origin %q: %d %s, want %d %s", tt.host, tt.origin, w.Code, body, tt.code, tt.want)
			}
			if (tt.code == 403) != (len(refused) == 1) {
				t.Errorf("host %q origin %q: refused %+v", tt.host, tt.origin, refused)
			}
			w = httptest.NewRecorder()
			server.Handler(true).ServeHTTP(w, r)
			if w.Code != http.StatusOK {
				t.Errorf("host %q origin %q on the control socket: %d", tt.host, tt.origin, w.Code)
			}
		}
	}
}

// TestStateOverLoopbackOnly: ends of a connection => state is answered or refused; health and
// metrics are answered everywhere.
func TestStateOverLoopbackOnly(t *testing.T) {
	var refused []server.Refusal
	ok := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	s := server.New(apitest.New(1), server.Config{Metrics: ok, Health: ok, Page: ok, Refused: func(r server.Refusal) { refused = append(refused, r) }}, quiet())
	for _, ends := range []struct {
		remote, local string
		state         int
	}{
		{"127.0.0.1:1", "127.0.0.1:9990", 200},
		{"[::1]:1", "[::1]:9990", 200},
		{"[::ffff:127.0.0.1]:1", "[::ffff:127.0.0.1]:9990", 200}, // a listener of both families
		{"192.0.2.7:1", "192.0.2.1:9990", 403},
		// the node itself, by an address that others have as well
		{"192.0.2.1:1", "192.0.2.1:9990", 403},
		{"192.0.2.7:1", "127.0.0.1:9990", 403}, // a neighbour, where the kernel routes loopback
		{"[2001:db8::7]:1", "[2001:db8::1]:9990", 403},
		{"[fe80::7%eth0]:1", "[fe80::1%eth0]:9990", 403},
		{"", "127.0.0.1:9990", 403},
	} {
		for path, code := range map[string]int{
			"/livez": 200, "/readyz?verbose": 200, "/healthz": 200, "/metrics": 200, "/": ends.state, "/services": ends.state, "/openapi.json": ends.state,
			"/api/v1/services": ends.state, "/api/v1/trace?follow=false": ends.state, "/livez/": ends.state,
		} {
			refused = nil
			r := httptest.NewRequest(http.MethodGet, path, http.NoBody)
			r.Host = "127.0.0.1:9990"
			w := httptest.NewRecorder()
			s.HandlerBetween(ends.remote, ends.local, false).ServeHTTP(w, r)
			if w.Code != code || w.Code == 403 && !strings.Contains(w.Body.String(), "use troupe --node NODE, which needs the right to create pods/portforward") {
				t.Errorf("%+v %s: %d %s, want %d", ends, path, w.Code, w.Body, code)
			}
			if (code == 403) != (len(refused) == 1 && refused[0].Why == server.RefusedAddress) {
				t.Errorf("%+v %s: refused %+v", ends, path, refused)
			}
			w = httptest.NewRecorder()
			if s.HandlerBetween("@", ends.local, true).ServeHTTP(w, r); w.Code == http.StatusForbidden {
				t.Errorf("%s on the control socket: %d", path, w.Code)
			}
		}
	}
}

// TestRefusalOfAHost: the refusal for the log has the listener and the reason.
func TestRefusalOfAHost(t *testing.T) {
	refused := make(chan server.Refusal, 1)
	a := apitest.Start(t, apitest.New(1), func(c *server.Config) { c.Refused = func(r server.Refusal) { refused <- r } })
	r, err := http.NewRequest(http.MethodGet, "http://rebind.example/api/v1/services", nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := tcp(a).Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusForbidden {
		t.Fatalf("%d", response.StatusCode)
	}
	if got := <-refused; got.Listener != "http" || got.Why != server.RefusedHost ||
		!strings.HasPrefix(got.Client, "127.0.0.1:") || !strings.HasPrefix(got.Text, `host "rebind.example" is not allowed`) {
		t.Errorf("%+v", got)
	}
}

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }
