package fleet

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/troupe-vpp/troupe/bootstrap/api"
	"github.com/troupe-vpp/troupe/bootstrap/api/apitest"
	"github.com/troupe-vpp/troupe/bootstrap/cli"
)

// TestCollectKeepsTheLimit: a part above the limit is an error of the node. The backend of the
// archive answers with the same error.
func TestCollectKeepsTheLimit(t *testing.T) {
	agent := apitest.Start(t, apitest.New(50), nil)
	n := collect(t.Context(), cli.NewClient(agent.Address), "shop-a", 2000)
	if n.Status == nil || n.Resync == nil || n.Services != nil || len(n.Details) != 0 {
		t.Errorf("status %v, resync %v, %d services, %d details", n.Status, n.Resync, len(n.Services), len(n.Details))
	}
	const want = "services: above the limit of size"
	if !slices.Contains(n.Errors, want) {
		t.Errorf("no error %q: %q", want, n.Errors)
	}
	if _, err := newArchived(n).Services(t.Context()); err == nil || !strings.Contains(err.Error(), "not in the archive: "+want) {
		t.Errorf("services of the archive: %v", err)
	}
	if n = collect(t.Context(), cli.NewClient(agent.Address), "shop-a", 1<<20); len(n.Services) != 50 || len(n.Details) != 50 || slices.Contains(n.Errors, want) {
		t.Errorf("%d services, %d details: %q", len(n.Services), len(n.Details), n.Errors)
	}
}

// TestCollectLeavesOut: the agent shows documents of external configuration and contents of
// messages, and an archive has neither.
func TestCollectLeavesOut(t *testing.T) {
	backend := apitest.New(2) // the actor of service-001 has a message with the key shop/web
	agent := apitest.Start(t, backend, nil)
	const document = "kept-by-the-tenant"
	if _, err := backend.ApplyExternal(t.Context(), "tenant", []byte(`{"note":"`+document+`"}`)); err != nil {
		t.Fatal(err)
	}
	c := cli.NewClient(agent.Address)
	secrets := map[string]string{document: "external", "shop/web": "actors/agent/world/services/shop~service-001/mailbox"}
	for secret, resource := range secrets {
		var shown json.RawMessage
		if err := c.Get(t.Context(), resource, nil, &shown); err != nil || !strings.Contains(string(shown), secret) {
			t.Errorf("%s has not %q: %v\n%s", resource, secret, err, shown)
		}
	}
	n := collect(t.Context(), c, "shop-a", 1<<20)
	text, err := json.Marshal(n)
	if err != nil {
		t.Fatal(err)
	}
	if n.External == nil || len(n.External.Layers) != 1 || n.External.Layers[0].Source != "tenant" ||
		!slices.ContainsFunc(n.Actors, func(a api.Actor) bool { return a.Pending == 1 }) {
		t.Errorf("external configuration %+v, actors %+v", n.External, n.Actors)
	}
	for secret := range secrets {
		if strings.Contains(string(text), secret) {
			t.Errorf("%q is in\n%s", secret, text)
		}
	}
}

// TestHostileAgent: what an agent answers => the budget ends it, the other parts are there, and
// nothing of it becomes a path or the name of another node.
func TestHostileAgent(t *testing.T) {
	for name, c := range map[string]struct {
		path, answer string // %d is the number of the request
		want         string
	}{
		"the same page again":   {"services", `{"items":[{"key":"a/b"}],"next":"x"}`, "its pages do not end"},
		"pages without an end":  {"services", `{"items":[{"key":"a/b"}],"next":"%d"}`, "services: above the limit of size"},
		"more than asked for":   {"services", `{"items":[` + strings.Repeat(`{"key":"a/b","namespace":"a","name":"b"},`, 1500) + `{}]}`, "its pages do not end"},
		"interfaces, endless":   {"interfaces", `{"next":"x"}`, "its pages do not end"},
		"events, endless":       {"events", `{"items":[{"seq":7}],"next":7}`, "the pages do not end"},
		"a large answer":        {"diff", `{"reason":"` + strings.Repeat("x", 1<<20) + `"}`, "diff: above the limit of size"},
		"a large text":          {"metrics", strings.Repeat("x", 1<<20), "metrics: above the limit of size"},
		"many tiny objects":     {"sessions", `{"x":[` + strings.Repeat("{},", 9000) + `{}]}`, "sessions: above the limit of size"},
		"another node":          {"status", `{"node":"n2","ready":true}`, "status: the agent has the name of another node"},
		"a path for a name":     {"status", `{"node":"../../n1"}`, "status: the agent has the name of another node"},
		"a path for a service":  {"services", `{"items":[{"key":"../../../../secrets"}]}`, "is no key of a service"},
		"a query for a service": {"services", `{"items":[{"key":"a/b?x=y"}]}`, "is no key of a service"},
	} {
		asked := 0
		agent := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch path.Base(r.URL.Path) {
			case c.path:
				asked++
				fmt.Fprint(w, strings.ReplaceAll(c.answer, "%d", strconv.Itoa(asked)))
			case "status":
				fmt.Fprint(w, `{"node":"n1","version":"v1"}`)
			default:
				if strings.Contains(r.RequestURI, "secrets") || strings.Contains(r.RequestURI, "?x=y") {
					t.Errorf("%s: asked for %s", name, r.RequestURI)
				}
				fmt.Fprint(w, `{}`)
			}
		}))
		n := collect(t.Context(), cli.NewClient(strings.TrimPrefix(agent.URL, "http://")), "n1", 1<<18)
		agent.Close()
		if !slices.ContainsFunc(n.Errors, func(e string) bool { return strings.Contains(e, c.want) }) {
			t.Errorf("%s: no error %q in %q", name, c.want, n.Errors)
		}
		if n.Name != "n1" || c.path != "status" && n.Status == nil || n.Status != nil && n.Status.Node != "n1" {
			t.Errorf("%s: node %s, %+v", name, n.Name, n.Status)
		}
		if err := writeArchive(io.Discard, dumpManifest{Time: time.Now()}, []*api.Dump{n}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
