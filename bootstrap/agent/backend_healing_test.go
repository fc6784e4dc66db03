package agent

import (
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/troupe-vpp/troupe/bootstrap/api"
	"github.com/troupe-vpp/troupe/vpp/simulator"
)

// TestHealingIsShown: VPP refuses a service for a while; what was done about it is in the API and
// in the metrics.
func TestHealingIsShown(t *testing.T) {
	cfg := everything(t)
	a := run(t, cfg)
	ready(t, a)
	settled(t, a)
	b := a.Backend()
	if r := must(b.Resync(t.Context()))(t); len(r.Healing) > 0 || len(r.Ill) > 0 || r.Healing == nil || r.Ill == nil {
		t.Errorf("at first %+v", r)
	}
	vip := "" // of any row of TCP
	for _, s := range must(b.Services(t.Context()))(t) {
		for _, row := range must(b.Service(t.Context(), s.Key))(t).InVPP {
			if address, found := strings.CutSuffix(row.VIP, "/TCP"); found {
				vip = address
			}
		}
	}
	mend := a.Simulator().Inject(simulator.Fault{Message: "nat44_add_del_lb_static_mapping", Retval: -1, Times: 2})
	defer mend()
	if retval, err := a.Simulator().ForeignRemove(netip.MustParseAddrPort(vip), 6); err != nil || retval != 0 {
		t.Fatal(retval, err)
	}
	if err := b.StartResync(t.Context(), api.ResyncRequest{Reason: "test"}); err != nil {
		t.Fatal(err)
	}
	deadline := time.Now().Add(20 * time.Second)
	for {
		r := must(b.Resync(t.Context()))(t)
		if len(r.Healing) == 1 && r.Healing[0].Part == "nat44" && r.Healing[0].Rung == "key" && r.Healing[0].Count == 2 && r.Renderers[0].InSync {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("%+v", r)
		}
		time.Sleep(20 * time.Millisecond) // the pace of asking
	}
	answer := httptest.NewRecorder()
	a.Metrics().ServeHTTP(answer, httptest.NewRequest("GET", "/metrics", nil))
	for _, line := range []string{`troupe_healing_total{part="nat44",rung="key"} 2`, `troupe_drift_total{renderer="nat44"} 1`} {
		if !strings.Contains(answer.Body.String(), line) {
			t.Errorf("metrics lack %s", line)
		}
	}
}
