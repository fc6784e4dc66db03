package podproxy

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/troupe-vpp/troupe/kube/outbound"
)

// taker is a transport that returns no answer and remembers the host of the request.
type taker struct{ host string }

func (t *taker) RoundTrip(r *http.Request) (*http.Response, error) {
	t.host = r.Host
	return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, nil
}

// TestHostThatTheAgentAccepts: a host name of the API server becomes localhost, which the agent
// accepts; an address stays.
func TestHostThatTheAgentAccepts(t *testing.T) {
	for server, want := range map[string]string{
		"https://api.example.com:6443": "localhost", "https://192.0.2.1:6443": "192.0.2.1:6443", "https://[2001:db8::1]:6443": "[2001:db8::1]:6443",
	} {
		base, err := url.Parse(server)
		if err != nil {
			t.Fatal(err)
		}
		request, err := http.NewRequest(http.MethodGet, server+"/api", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		next := &taker{}
		if _, err := (&toLocalhost{next, base}).RoundTrip(request); err != nil || next.host != want || request.Host == "localhost" {
			t.Errorf("%s: %s, %v", server, next.host, err)
		}
	}
}

// TestTokenStaysHere: an agent behind the proxy, and the API server itself, redirect => no request
// goes to the target of the redirect. Kubeconfig's token goes to the API server only.
func TestTokenStaysHere(t *testing.T) {
	thief := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("the thief got %s with %q", r.URL, r.Header.Get("Authorization"))
	}))
	defer thief.Close()
	listed := true
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Header.Get("Authorization") != "Bearer secret":
			t.Errorf("%s without the token", r.URL)
		case listed && strings.HasSuffix(r.URL.Path, "/pods"):
			_, _ = io.WriteString(w, `{"items":[{"metadata":{"name":"p1"},"spec":{"nodeName":"n1"},"status":{"phase":"Running"}}]}`)
		default:
			http.Redirect(w, r, thief.URL, http.StatusFound)
		}
	}))
	defer server.Close()
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(file, []byte(`{"current-context":"c","contexts":[{"name":"c","context":{"cluster":"c","user":"u"}}],
		"clusters":[{"name":"c","cluster":{"insecure-skip-tls-verify":true,"server":"`+server.URL+`"}}],"users":[{"name":"u","user":{"token":"secret"}}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	config := Config{Kubeconfig: file, Namespace: Namespace, Port: "9990"}
	agents, err := All(t.Context(), config)
	if err != nil || len(agents) != 1 || agents[0].Node != "n1" {
		t.Fatalf("%+v, %v", agents, err)
	}
	answer, err := outbound.Client(agents[0].URL, agents[0].Transport, 0).Get(agents[0].URL.JoinPath("api/v1/status").String())
	if err != nil || answer.StatusCode != http.StatusFound {
		t.Errorf("%v, %v", answer, err)
	} else {
		_ = answer.Body.Close()
	}
	listed = false
	if agents, err := All(t.Context(), config); err == nil || !strings.Contains(err.Error(), "302 Found") {
		t.Errorf("%+v, %v", agents, err)
	}
}
