package simulator

import (
	"slices"
	"strings"
	"sync"
	"testing"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/nat44_ed"
)

// TestObserve: what clients have asked for is seen in its order, with what it changes, and without what was lost on the way.
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
	if _, err := r.Exec(&nat44_ed.Nat44LbStaticMappingDump{}); err != nil { // of nobody's connection
		t.Error(err)
	}
	r.Inject(Fault{Message: "nat44_forwarding_enable_disable", Disconnect: true})
	_ = r.conn.Invoke(timeout(t), &nat44_ed.Nat44ForwardingEnableDisable{}, &nat44_ed.Nat44ForwardingEnableDisableReply{}) // it cannot succeed
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
