package server_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/troupe-vpp/troupe/bootstrap/api"
	"github.com/troupe-vpp/troupe/bootstrap/api/apitest"
	"github.com/troupe-vpp/troupe/bootstrap/api/server"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// tcp and control return clients of the two listeners that keep no connection.
func tcp(a *apitest.Agent) *http.Client { return clientTo("tcp", a.Address) }

func control(a *apitest.Agent) *http.Client { return clientTo("unix", a.Socket) }

func clientTo(network, address string) *http.Client {
	return &http.Client{Timeout: 20 * time.Second, Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, network, address)
		},
	}}
}

// call sends a request and returns status and body.
func call(t *testing.T, c *http.Client, method, target, body string) (int, string, http.Header) {
	t.Helper()
	r, err := http.NewRequest(method, "http://localhost"+target, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	response, err := c.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(content), response.Header
}

// get asks over TCP and decodes the answer.
func ask[T any](t *testing.T, a *apitest.Agent, target string) T {
	t.Helper()
	code, body, _ := call(t, tcp(a), http.MethodGet, target, "")
	if code != http.StatusOK {
		t.Fatalf("GET %s: %d %s", target, code, body)
	}
	var value T
	if err := json.Unmarshal([]byte(body), &value); err != nil {
		t.Fatalf("GET %s: %v in %s", target, err, body)
	}
	return value
}

// TestStatus holds what each wrong or special request is answered with.
func TestStatus(t *testing.T) {
	a := apitest.Start(t, apitest.New(3), nil)
	for _, tt := range []struct {
		method, target string
		code           int
		text           string
	}{
		{"GET", "/api/v1/services", 200, `"total": 3`},
		{"GET", "/api/v1/services/shop/service-001", 200, `"service": "shop/service-001"`},
		{"GET", "/api/v1/services/shop/none", 404, "service shop/none: not found"},
		{"GET", "/api/v1/services/shop", 404, "no such resource: /api/v1/services/shop"},
		{"GET", "/api/v1/nothing", 404, "no such resource"},
		{"GET", "/api/v2/services", 404, "no such resource"},
		{"GET", "/api/v1/services?stat=failed", 400, `unknown parameter \"stat\": expected limit, cursor, sort, namespace, served, state`},
		{"GET", "/api/v1/services?state=a&state=b", 400, `parameter \"state\" is duplicate`},
		{"GET", "/api/v1/actors?limit=0", 400, "limit"},
		{"GET", "/api/v1/actors?limit=x", 400, "limit"},
		{"GET", "/api/v1/actors?sort=size", 400, `sort \"size\" is not one of path, pending`},
		{"GET", "/api/v1/actors?cursor=!", 400, "cursor: was not issued by this server"},
		{"GET", "/api/v1/actors/agent/world", 200, `"path": "agent/world"`},
		{"GET", "/api/v1/actors/agent/none", 404, "actor agent/none: not found"},
		{"GET", "/api/v1/actors/agent/world/mailbox", 200, `"held": false`},
		{"GET", "/api/v1/actors/agent/world/state", 200, `"lives": 1`},
		{"GET", "/api/v1/actors/agent/world/failures", 200, `"items": []`},
		{"GET", "/api/v1/actors/agent/world:kill", 400, "use POST"},
		{"GET", "/api/v1/interfaces", 503, "unavailable: VPP is not connected"},
		{"GET", "/api/v1/nodes", 200, `"self": "shop-a"`},
		{"GET", "/api/v1/nodes?x=1", 400, "unknown parameter"},
		{"GET", "/api/v1/diff", 200, `"operations": []`},
		{"GET", "/api/v1/tree", 200, `"name": "agent"`},
		{"GET", "/api/v1/top?by=color", 400, "by"},
		{"GET", "/api/v1/events?before=0", 400, "before"},
		{"GET", "/api/v1/resync", 200, `"epoch": 1`},
		{"POST", "/api/v1/services", 405, "method POST is not allowed: expected GET, HEAD, OPTIONS"},
		{"DELETE", "/api/v1/resync", 405, "expected GET, HEAD, OPTIONS, POST"},
		{"OPTIONS", "/api/v1/resync", 204, ""},
		{"POST", "/livez", 405, "not allowed"},
		{"GET", "/metrics", 404, ""},
		{"GET", "/", 404, ""},
	} {
		t.Run(tt.method+" "+tt.target, func(t *testing.T) {
			code, body, header := call(t, tcp(a), tt.method, tt.target, "")
			if code != tt.code || !strings.Contains(body, tt.text) {
				t.Errorf("%d %s\nwant %d with %q", code, body, tt.code, tt.text)
			}
			if code == 405 && header.Get("Allow") == "" {
				t.Error("no Allow header")
			}
			if strings.HasPrefix(tt.target, "/api/") && body != "" {
				if got := header.Get("Content-Type"); got != "application/json" {
					t.Errorf("content type %q", got)
				}
				if !json.Valid([]byte(body)) {
					t.Errorf("not JSON: %s", body)
				}
			}
		})
	}
}

// TestHead: the same header as GET, no body.
func TestHead(t *testing.T) {
	a := apitest.Start(t, apitest.New(1), nil)
	for _, target := range []string{"/livez", "/api/v1/services", "/api/v1/nothing"} {
		get, body, _ := call(t, tcp(a), http.MethodGet, target, "")
		head, nothing, header := call(t, tcp(a), http.MethodHead, target, "")
		if head != get || nothing != "" || header.Get("Content-Length") != fmt.Sprint(len(body)) {
			t.Errorf("HEAD %s: %d %q length %s; GET %d with %d bytes", target, head, nothing, header.Get("Content-Length"), get, len(body))
		}
	}
}

// TestOnlyTheControlSocketChangesAnything is the rule that keeps an open port harmless.
func TestOnlyTheControlSocketChangesAnything(t *testing.T) {
	a := apitest.Start(t, apitest.New(2), nil)
	nat44 := "/api/v1/actors/agent/dataplane/nat44"
	for _, target := range []string{"/api/v1/resync", nat44 + ":kill"} {
		code, body, _ := call(t, tcp(a), http.MethodPost, target, "")
		if code != http.StatusForbidden || !strings.Contains(body, "control socket") {
			t.Errorf("POST %s over TCP: %d %s", target, code, body)
		}
	}
	if events := ask[api.EventPage](t, a, "/api/v1/events"); len(events.Items) > 0 {
		t.Fatalf("a call over TCP changed something: %+v", events.Items)
	}

	for _, tt := range []struct {
		target, body string
		code         int
	}{
		{"/api/v1/resync", `{"reason": "just so"}`, 202},
		{"/api/v1/resync", "", 202},
		{"/api/v1/resync", `{"why": "x"}`, 400},
		{"/api/v1/resync", `{} {}`, 400},
		{"/api/v1/resync", `{"reason": "` + strings.Repeat("x", 1<<20) + `"}`, 413},
		{nat44 + ":kill", "", 202},
		{nat44 + ":suspend", "", 202},
		{nat44 + ":suspend", "", 409},
		{nat44 + ":resume", "", 202},
		{nat44 + ":restart", "", 501},
		{nat44 + ":dance", "", 400},
		{nat44, "", 400},
		{"/api/v1/actors/agent/none:kill", "", 404},
	} {
		if code, body, _ := call(t, control(a), http.MethodPost, tt.target, tt.body); code != tt.code {
			t.Errorf("POST %s: %d %s, want %d", tt.target, code, body, tt.code)
		}
	}
	if code, body, _ := call(t, control(a), http.MethodGet, nat44, ""); code != 200 || !strings.Contains(body, `"incarnation": 2`) {
		t.Errorf("the control socket reads as well: %d %s", code, body)
	}
	events := ask[api.EventPage](t, a, "/api/v1/events")
	var got []string
	for _, e := range events.Items {
		got = append(got, e.Text)
	}
	want := []string{"resume", "suspend", "kill", "asked for through the control socket", "just so"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("journal, the newest first (-want +got):\n%s", diff)
	}
}

func TestHealth(t *testing.T) {
	probes := map[string]int{}
	a := apitest.Start(t, apitest.New(0), func(c *server.Config) {
		c.Probed = func(probe string, status int) { probes[fmt.Sprint(probe, status)]++ }
		c.Health = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("as kube-proxy")) })
	})
	check := func(target string, code int, want string) {
		t.Helper()
		got, body, _ := call(t, tcp(a), http.MethodGet, target, "")
		if got != code || body != want {
			t.Errorf("%s: %d %q, want %d %q", target, got, body, code, want)
		}
	}
	check("/livez", 200, "ok\n")
	check("/readyz", 200, "ok\n")
	check("/readyz?verbose", 200, "[+]nat44 ok\n[+]watch ok\nready\n")
	check("/healthz", 200, "as kube-proxy")

	a.Break(errors.New("no answer"), api.Readiness{
		Parts: []api.Part{{Name: "link", Reason: "no such file"}, {Name: "watch", OK: true, Reason: "1 warning"}},
	})
	check("/livez", 503, "not live: no answer\n")
	check("/readyz", 503, "[-]link failed: no such file\nnot ready\n")
	check("/readyz?verbose", 503, "[-]link failed: no such file\n[+]watch ok: 1 warning\nnot ready\n")

	if err := a.Stop(); err != nil { // the map is ours again
		t.Fatal(err)
	}
	want := map[string]int{"livez200": 1, "livez503": 1, "readyz200": 2, "readyz503": 2}
	if diff := cmp.Diff(want, probes); diff != "" {
		t.Errorf("probes counted (-want +got):\n%s", diff)
	}
}

func TestPageAndMetricsHandlers(t *testing.T) {
	text := func(s string) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, s) })
	}
	a := apitest.Start(t, apitest.New(0), func(c *server.Config) { c.Page, c.Metrics = text("page"), text("metrics") })
	for target, want := range map[string]string{"/": "page", "/style.css": "page", "/metrics": "metrics"} {
		if code, body, _ := call(t, tcp(a), http.MethodGet, target, ""); code != 200 || body != want {
			t.Errorf("%s: %d %q", target, code, body)
		}
	}
	if code, _, _ := call(t, tcp(a), http.MethodGet, "/api/v1/x", ""); code != 404 {
		t.Errorf("an unknown resource is answered %d by the page", code)
	}
}

// TestSlowBackend: a request has a deadline, and the next one is not behind it.
func TestSlowBackend(t *testing.T) {
	backend := apitest.New(0)
	backend.Hooks.Diff = func(ctx context.Context) error {
		<-ctx.Done()
		return ctx.Err()
	}
	a := apitest.Start(t, backend, func(c *server.Config) { c.Timeout = 500 * time.Millisecond })
	code, body, _ := call(t, tcp(a), http.MethodGet, "/api/v1/diff", "")
	if code != http.StatusGatewayTimeout || !strings.Contains(body, "read VPP: context deadline exceeded") {
		t.Errorf("%d %s", code, body)
	}
	if code, _, _ := call(t, tcp(a), http.MethodGet, "/livez", ""); code != 200 {
		t.Errorf("livez: %d", code)
	}
}

// TestShutdownWaits: a request under way is answered.
func TestShutdownWaits(t *testing.T) {
	backend := apitest.New(0)
	entered, block := make(chan struct{}), make(chan struct{})
	backend.Hooks.Diff = func(context.Context) error {
		close(entered)
		<-block
		return nil
	}
	a := apitest.Start(t, backend, nil)
	conn, err := net.Dial("unix", a.Socket)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "GET /api/v1/diff HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	<-entered
	stopped := make(chan error, 1)
	go func() { stopped <- a.Stop() }()
	close(block)
	answer, err := io.ReadAll(conn)
	if err != nil || !strings.HasPrefix(string(answer), "HTTP/1.1 200 OK") {
		t.Errorf("answer %q, %v", answer, err)
	}
	if err := <-stopped; err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(a.Socket); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the socket file is left behind: %v", err)
	}
}

func TestPanicIsAnswered(t *testing.T) {
	backend := apitest.New(0)
	backend.Hooks.Nodes = func() { panic("nodes are on fire") }
	a := apitest.Start(t, backend, nil)
	if code, body, _ := call(t, tcp(a), http.MethodGet, "/api/v1/nodes", ""); code != 500 || strings.Contains(body, "fire") {
		t.Errorf("%d %s", code, body)
	}
	if code, _, _ := call(t, tcp(a), http.MethodGet, "/livez", ""); code != 200 {
		t.Error("the server is gone")
	}
}

func TestControlSocketIsPrivate(t *testing.T) {
	a := apitest.Start(t, apitest.New(0), nil)
	info, err := os.Stat(a.Socket)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	entries, _ := os.ReadDir(filepath.Dir(a.Socket))
	if len(entries) != 1 {
		t.Errorf("%d files beside the socket", len(entries)-1)
	}
}

func TestListenErrors(t *testing.T) {
	a := apitest.Start(t, apitest.New(0), nil)
	log := slog.New(slog.DiscardHandler)
	file := filepath.Join(filepath.Dir(a.Socket), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name string
		cfg  server.Config
		want string
	}{
		{"port in use", server.Config{HTTPAddress: a.Address}, "listen for HTTP: listen tcp"},
		{"socket in use", server.Config{HTTPAddress: "127.0.0.1:0", ControlSocket: a.Socket}, "is in use by another agent"},
		{"no socket", server.Config{ControlSocket: file}, "exists and is not a socket"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			err := server.New(a.Troupe, tt.cfg, log).Listen()
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want %q", err, tt.want)
			}
		})
	}
	if code, _, _ := call(t, control(a), http.MethodGet, "/livez", ""); code != 200 {
		t.Error("the socket in use was taken away")
	}
}

func TestFiltersAndTotals(t *testing.T) {
	a := apitest.Start(t, apitest.New(100), nil)
	for target, want := range map[string]int{
		"/api/v1/actors":                                                       105,
		"/api/v1/actors?kind=service":                                          100,
		"/api/v1/actors?under=agent/world":                                     102,
		"/api/v1/actors?under=agent/world/":                                    102,
		"/api/v1/actors?under=agent/wor":                                       0,
		"/api/v1/actors?kind=service&state=suspended":                          0,
		"/api/v1/services?state=failed":                                        10,
		"/api/v1/services?namespace=shop":                                      100,
		"/api/v1/services?namespace=sho":                                       0,
		"/api/v1/actors?sort=pending&limit=7&under=agent/world":                102,
		"/api/v1/actors?limit=1000&sort=failures&kind=service&state=":          100,
		"/api/v1/actors?" + url.Values{"kind": {"ser vice"}}.Encode():          0,
		"/api/v1/services?state=failed&namespace=shop&limit=3&cursor=":         10,
		"/api/v1/actors?under=agent/world/services/shop~service-007":           1,
		"/api/v1/actors?under=agent/world/services/shop~service-007&kind=none": 0,
	} {
		if got := ask[api.Page[struct{}]](t, a, target); got.Total != want || len(got.Items) > want {
			t.Errorf("%s: total %d with %d items, want %d", target, got.Total, len(got.Items), want)
		}
	}
}

func TestCursorOfAnotherOrder(t *testing.T) {
	a := apitest.Start(t, apitest.New(10), nil)
	page := ask[api.Page[api.Actor]](t, a, "/api/v1/actors?limit=2&sort=pending")
	code, body, _ := call(t, tcp(a), "GET", "/api/v1/actors?limit=2&sort=received&cursor="+page.Next, "")
	if code != 400 || !strings.Contains(body, "another order") {
		t.Errorf("%d %s", code, body)
	}
}

func TestTop(t *testing.T) {
	a := apitest.Start(t, apitest.New(30), nil)
	top := ask[api.Page[api.Actor]](t, a, "/api/v1/top?by=received&limit=2")
	if len(top.Items) != 2 || top.Items[0].Received != 29 || top.Items[1].Received != 28 || top.Next != "" {
		t.Errorf("top = %+v", top)
	}
	if top := ask[api.Page[api.Actor]](t, a, "/api/v1/top"); len(top.Items) != 10 || top.Items[0].Pending != 6 {
		t.Errorf("top = %+v", top)
	}
}
