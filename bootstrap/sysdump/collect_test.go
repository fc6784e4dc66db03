package sysdump

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/troupe-vpp/troupe/bootstrap/api"
	"github.com/troupe-vpp/troupe/bootstrap/api/apitest"
	"github.com/troupe-vpp/troupe/bootstrap/client"
)

// TestCollectKeepsTheLimit: a part above the limit is an error of the node. The backend of the
// archive answers with the same error.
func TestCollectKeepsTheLimit(t *testing.T) {
	agent := apitest.Start(t, apitest.New(50), nil)
	n := Collect(t.Context(), client.New(agent.Address), "n1", 2000)
	if n.Stat == nil || n.Progress == nil || n.All != nil || len(n.Details) != 0 {
		t.Errorf("status %v, resync %v, %d services, %d details", n.Stat, n.Progress, len(n.All), len(n.Details))
	}
	const want = "services: above the limit of size"
	if !slices.Contains(n.Errors, want) {
		t.Errorf("no error %q: %q", want, n.Errors)
	}
	if _, err := NewBackend(n).Services(t.Context()); err == nil || !strings.Contains(err.Error(), "not in the archive: "+want) {
		t.Errorf("services of the archive: %v", err)
	}
	if n = Collect(t.Context(), client.New(agent.Address), "n1", 1<<20); len(n.All) != 50 || len(n.Details) != 50 || slices.Contains(n.Errors, want) {
		t.Errorf("%d services, %d details: %q", len(n.All), len(n.Details), n.Errors)
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
	c := client.New(agent.Address)
	secrets := map[string]string{document: "external", "shop/web": "actors/agent/world/services/shop~service-001/mailbox"}
	for secret, resource := range secrets {
		var shown json.RawMessage
		if err := c.Get(t.Context(), resource, nil, &shown); err != nil || !strings.Contains(string(shown), secret) {
			t.Errorf("%s has not %q: %v\n%s", resource, secret, err, shown)
		}
	}
	n := Collect(t.Context(), c, "n1", 1<<20)
	text, err := json.Marshal(n)
	if err != nil {
		t.Fatal(err)
	}
	if n.Ext == nil || len(n.Ext.Layers) != 1 || n.Ext.Layers[0].Source != "tenant" ||
		!slices.ContainsFunc(n.Troupe, func(a api.Actor) bool { return a.Pending == 1 }) {
		t.Errorf("external configuration %+v, actors %+v", n.Ext, n.Troupe)
	}
	for secret := range secrets {
		if strings.Contains(string(text), secret) {
			t.Errorf("%q is in\n%s", secret, text)
		}
	}
}
