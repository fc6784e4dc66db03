package simulator

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/nat44_ed"
)

// TestObserve: requests of clients are observed in their order, with their class, and without
// requests that were lost on the way.
func TestObserve(t *testing.T) {
	var mu sync.Mutex
	var seen []string
	r := bareRig(t, Options{Observe: func(req api.Message, changes bool) {
		mu.Lock()
		defer mu.Unlock()
		if name := req.GetMessageName(); strings.HasPrefix(name, "nat44") {
			seen = append(seen, map[bool]string{true: "change ", false: "read "}[changes]+name)
		}
	}})
	r.enableNAT()
	dump[nat44_ed.Nat44LbStaticMappingDetails](t, r.conn, &nat44_ed.Nat44LbStaticMappingDump{})
	if _, err := r.Exec(&nat44_ed.Nat44LbStaticMappingDump{}); err != nil { // without a connection
		t.Error(err)
	}
	r.Inject(Fault{Message: "nat44_forwarding_enable_disable", Disconnect: true})
	// the caller does not learn that its answer will not come
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if err := r.conn.Invoke(ctx, &nat44_ed.Nat44ForwardingEnableDisable{}, &nat44_ed.Nat44ForwardingEnableDisableReply{}); err == nil {
		t.Error("there was an answer")
	}
	mu.Lock()
	defer mu.Unlock()
	want := []string{
		"change nat44_ed_plugin_enable_disable", "change nat44_forwarding_enable_disable", "change nat44_add_del_address_range",
		"read nat44_lb_static_mapping_dump",
	}
	if !slices.Equal(seen, want) {
		t.Errorf("saw %q, want %q", seen, want)
	}
}
