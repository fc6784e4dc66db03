package podforward_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/troupe-vpp/troupe/kube/kubetest"
	"github.com/troupe-vpp/troupe/kube/outbound"
	"github.com/troupe-vpp/troupe/kube/podforward"
)

// serve starts an API server with the pod of an agent on the node n1, whose ports are forwarded by
// the handler, and returns the way to it. It refuses everything without the token of the user.
func serve(t *testing.T, list, forward http.HandlerFunc) podforward.Config {
	t.Helper()
	const pods = "/api/v1/namespaces/troupe-system/pods"
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+pods, list)
	mux.HandleFunc("POST "+pods+"/p1/portforward", forward)
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer secret" {
			t.Errorf("%s without the token", r.URL)
		}
		mux.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(file, []byte(`{"current-context":"c","contexts":[{"name":"c","context":{"cluster":"c","user":"u"}}],
		"clusters":[{"name":"c","cluster":{"insecure-skip-tls-verify":true,"server":"`+server.URL+`"}}],"users":[{"name":"u","user":{"token":"secret"}}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	return podforward.Config{Kubeconfig: file, Namespace: podforward.Namespace, Node: "n1", Port: "9990"}
}

// onePod answers with the pod of an agent.
func onePod(w http.ResponseWriter, _ *http.Request) {
	_, _ = io.WriteString(w, `{"items":[{"metadata":{"name":"p1"},"spec":{"nodeName":"n1"},"status":{"phase":"Running"}}]}`)
}

// agent finds the agent.
func agent(t *testing.T, config podforward.Config) (*podforward.Agent, *http.Client) {
	t.Helper()
	a, err := podforward.Find(t.Context(), config)
	if err != nil || a.Node != "n1" {
		t.Fatalf("%+v, %v", a, err)
	}
	client := outbound.Client(a.URL, a.Transport, 0)
	t.Cleanup(client.CloseIdleConnections)
	return a, client
}

// TestTokenStaysHere: an agent, and the API server itself, redirect => no request goes to the
// target of the redirect. Kubeconfig's token goes to the API server only.
func TestTokenStaysHere(t *testing.T) {
	thief := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("the thief got %s with %q", r.URL, r.Header.Get("Authorization"))
	}))
	defer thief.Close()
	hostile := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "" {
			t.Errorf("the agent got the token: %q", r.Header)
		}
		http.Redirect(w, r, thief.URL, http.StatusFound)
	}))
	defer hostile.Close()
	redirect := func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, thief.URL, http.StatusFound) }
	a, client := agent(t, serve(t, onePod, func(w http.ResponseWriter, r *http.Request) {
		kubetest.Forward(w, r, hostile.Listener.Addr().String())
	}))
	answer, err := client.Get(a.URL.JoinPath("api/v1/status").String())
	if err != nil || answer.StatusCode != http.StatusFound {
		t.Fatalf("%v, %v", answer, err)
	}
	_ = answer.Body.Close()
	a, client = agent(t, serve(t, onePod, redirect))
	if _, err := client.Get(a.URL.String()); err == nil || !strings.Contains(err.Error(), "302 Found") {
		t.Error(err)
	}
	if agents, err := podforward.All(t.Context(), serve(t, redirect, redirect)); err == nil || !strings.Contains(err.Error(), "302 Found") {
		t.Errorf("%+v, %v", agents, err)
	}
}

// TestConversation: requests follow each other on one connection, and large bodies pass both ways.
func TestConversation(t *testing.T) {
	backend := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Host != "127.0.0.1:9990" {
			t.Errorf("host %s", r.Host)
		}
		_, _ = io.Copy(w, r.Body)
	}))
	defer backend.Close()
	dials := 0
	a, client := agent(t, serve(t, onePod, func(w http.ResponseWriter, r *http.Request) {
		dials++
		kubetest.Forward(w, r, backend.Listener.Addr().String())
	}))
	for _, body := range []string{"", "a", strings.Repeat("0123456789abcdef", 1<<16)} {
		answer, err := client.Post(a.URL.String(), "text/plain", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(answer.Body)
		if err != nil || string(content) != body {
			t.Errorf("%d bytes => %d bytes, %v", len(body), len(content), err)
		}
		_ = answer.Body.Close()
	}
	if dials != 1 {
		t.Errorf("%d connections", dials)
	}
}

// frame is a frame of SPDY.
func frame(kind uint32, flags byte, payload string) string {
	head := binary.BigEndian.AppendUint32(nil, kind)
	return string(binary.BigEndian.AppendUint32(head, uint32(flags)<<24|uint32(len(payload)))) + payload
}

// TestHostileKubelet: answer of the way to the agent => error. The root of a node decides what its
// kubelet sends.
func TestHostileKubelet(t *testing.T) {
	upgraded := func(protocol string, frames ...string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			for name, value := range map[string]string{"Connection": "Upgrade", "Upgrade": "SPDY/3.1", "X-Stream-Protocol-Version": protocol} {
				w.Header().Set(name, value)
			}
			w.WriteHeader(http.StatusSwitchingProtocols)
			if conn, _, err := http.NewResponseController(w).Hijack(); err == nil {
				_, _ = io.WriteString(conn, strings.Join(frames, ""))
				_, _ = io.Copy(io.Discard, conn)
				_ = conn.Close()
			}
		}
	}
	sends := func(frames ...string) http.HandlerFunc { return upgraded("portforward.k8s.io", frames...) }
	const ok = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
	for name, c := range map[string]struct {
		forward http.HandlerFunc
		want    string
	}{
		"forbidden": {func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusForbidden)
			fmt.Fprint(w, `{"kind":"Status","message":"User \"u\" cannot create resource \"pods/portforward\""}`)
		}, `User "u" cannot create resource "pods/portforward"`},
		"long refusal": {func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusTeapot)
			fmt.Fprintf(w, `{"kind":"Status","message":%q}`, strings.Repeat("x", 1<<20))
		}, "418 I'm a teapot"},
		"headers without end": {sends(frame(3, 0, "HTTP/1.1 200 OK\r\na: "+strings.Repeat("x", 1<<20))), "exceeded"},
		"other protocol":      {upgraded("v2.portforward.k8s.io"), "another protocol than portforward.k8s.io"},
		"no upgrade":          {func(http.ResponseWriter, *http.Request) {}, "200 OK"},
		"no listener":         {func(w http.ResponseWriter, r *http.Request) { kubetest.Forward(w, r, "127.0.0.1:1") }, "nothing listens on port 9990 of the node's loopback"},
		"reason":              {sends(frame(1, 0, "the pod is gone")), "the pod is gone"},
		"long reason":         {sends(frame(1, 0, strings.Repeat("x", 1<<20))), strings.Repeat("x", 1000)},
		"stream":              {sends(frame(0x80030001, 0, "0123456789")), "a frame that does not belong to port forwarding: 0x80030001"},
		"headers":             {sends(frame(0x80030008, 0, "0123")), "a frame that does not belong to port forwarding"},
		"other stream":        {sends(frame(5, 0, ok)), "a frame that does not belong to port forwarding: 0x5"},
		"large ping":          {sends(frame(0x80030006, 0, strings.Repeat("x", 1<<20))), "a frame that does not belong to port forwarding"},
		"end":                 {sends(frame(3, 1, ""), frame(1, 1, "")), "EOF"},
		"reset":               {sends(frame(0x80030003, 0, "\x00\x00\x00\x030005"), frame(0x80030003, 0, "\x00\x00\x00\x010005")), "EOF"},
		"end of all":          {sends(frame(0x80030007, 0, "00000000")), "EOF"},
		"end in an answer":    {sends(frame(3, 1, ok[:17]), frame(1, 1, "")), "EOF"},
		"reason after end":    {sends(frame(3, 1, ""), frame(0x80030003, 0, "\x00\x00\x00\x030005"), frame(1, 0, "the port is gone")), "the port is gone"},
		"garbage":             {sends(strings.Repeat("\xff", 64)), "a frame that does not belong to port forwarding: 0xffffffff"},
		"answer of garbage":   {sends(frame(3, 0, "\x1b[31m\r\n\r\n")), "malformed HTTP"},
		"all that a kubelet may send": {sends(frame(0x80030002, 0, strings.Repeat("z", 1<<20)), frame(0x80030006, 0, "0001"), frame(0x80030004, 0, "0000"),
			frame(1, 1, ""), frame(3, 0, ""), frame(3, 0, ok[:20]), frame(0x80030009, 0, "00000000"), frame(3, 1, ok[20:])), ""},
	} {
		a, client := agent(t, serve(t, onePod, c.forward))
		answer, err := client.Get(a.URL.String())
		if err == nil {
			_ = answer.Body.Close()
		}
		if (err == nil) != (c.want == "") || err != nil && (!strings.Contains(err.Error(), c.want) || len(err.Error()) > 2000) {
			t.Errorf("%s: %.2000v, want %.100s", name, err, c.want)
		}
	}
}

// TestSilentWay: the API server does not reach the kubelet => the request ends with its context.
func TestSilentWay(t *testing.T) {
	release := make(chan struct{})
	a, client := agent(t, serve(t, onePod, func(http.ResponseWriter, *http.Request) { <-release }))
	defer close(release)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, a.URL.String(), http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	if answer, err := client.Do(request); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v, %v", answer, err)
	}
}
