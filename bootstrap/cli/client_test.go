package cli_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/troupe-vpp/troupe/bootstrap/api"
	"github.com/troupe-vpp/troupe/bootstrap/api/apitest"
	"github.com/troupe-vpp/troupe/bootstrap/cli"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestErrorsKeepTheirMeaning across the wire.
func TestErrorsKeepTheirMeaning(t *testing.T) {
	a := apitest.Start(t, apitest.New(1), nil)
	tcp, control := cli.NewClient(a.Address), cli.NewControl(a.Socket)
	var into any
	for _, tt := range []struct {
		name string
		err  error
		is   error
	}{
		{"not found", tcp.Get(t.Context(), "services/a/b", nil, &into), api.ErrNotFound},
		{"unavailable", tcp.Get(t.Context(), "interfaces", nil, &into), api.ErrUnavailable},
		{"unsupported", control.Post(t.Context(), "actors/agent:restart", nil), api.ErrUnsupported},
		{"nothing wrong yet", control.Post(t.Context(), "actors/agent:suspend", nil), nil},
		{"conflict", control.Post(t.Context(), "actors/agent:suspend", nil), api.ErrConflict},
	} {
		if !errors.Is(tt.err, tt.is) {
			t.Errorf("%s: %v is not %v", tt.name, tt.err, tt.is)
		}
	}
	var refused *cli.AgentError
	if err := tcp.Post(t.Context(), "resync", nil); !errors.As(err, &refused) || refused.Status != http.StatusForbidden {
		t.Errorf("a change over TCP: %v", err)
	}
}

func TestAllPages(t *testing.T) {
	a := apitest.Start(t, apitest.New(2100), nil)
	for most, want := range map[int]int{0: 2100, 1: 1, 1000: 1000, 1001: 1001, 5000: 2100} {
		items, total, err := cli.All[api.Service](t.Context(), cli.NewClient(a.Address), "services", nil, most)
		if err != nil || len(items) != want || total != 2100 {
			t.Errorf("at most %d: %d of %d, %v", most, len(items), total, err)
		}
	}
}

func TestText(t *testing.T) {
	a := apitest.Start(t, apitest.New(0), nil)
	text, status, err := cli.NewClient(a.Address).Text(t.Context(), "readyz?verbose")
	if err != nil || status != http.StatusOK || !strings.HasSuffix(text, "ready\n") {
		t.Errorf("%d %q %v", status, text, err)
	}
}

// TestNotAnAgent: another program answers at the address.
func TestNotAnAgent(t *testing.T) {
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "nodes") {
			w.WriteHeader(http.StatusTeapot)
		}
		_, _ = io.WriteString(w, "<html>")
	}))
	defer other.Close()
	c := cli.NewClient(strings.TrimPrefix(other.URL, "http://"))
	var into any
	if err := c.Get(t.Context(), "nodes", nil, &into); err == nil || err.Error() != "I'm a teapot <html>" {
		t.Errorf("error %v", err)
	}
	if err := c.Get(t.Context(), "services", nil, &into); err == nil || !strings.Contains(err.Error(), "decode the answer of the agent at 127.0.0.1") {
		t.Errorf("error %v", err)
	}
}

// TestRedirect: an agent that redirects is no agent, for every kind of request, and the target of
// the redirect gets none.
func TestRedirect(t *testing.T) {
	thief := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		t.Errorf("the thief got %s %s", r.Method, r.URL)
		_, _ = io.WriteString(w, "{}")
	}))
	defer thief.Close()
	agent := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Location", thief.URL)
		w.WriteHeader(http.StatusFound)
		_, _ = io.WriteString(w, `{"node":"n1","ready":true}`)
	}))
	defer agent.Close()
	c := cli.NewClient(strings.TrimPrefix(agent.URL, "http://"))
	var into any
	_, _, text := c.Text(t.Context(), "metrics")
	for name, err := range map[string]error{
		"get": c.Get(t.Context(), "status", nil, &into), "post": c.Post(t.Context(), "resync", nil), "text": text,
		"stream": c.Stream(t.Context(), "trace", nil, func([]byte) error { return nil }),
	} {
		if err == nil || !strings.Contains(err.Error(), "redirects elsewhere") {
			t.Errorf("%s: %v, decoded %v", name, err, into)
		}
	}
}
