package bootstrap

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/troupe-vpp/troupe/bootstrap/cli/node"
	"github.com/troupe-vpp/troupe/vpp/simulator"
)

// TestVersionOfVPP: what a VPP can do is printed, with the exact name of what is missing; nothing
// is waited for.
func TestVersionOfVPP(t *testing.T) {
	vpp := simulator.New(simulator.Options{WithoutPlugins: []string{"acl"}})
	t.Cleanup(func() { _ = vpp.Close() })
	socket := filepath.Join(t.TempDir(), "api.sock")
	if err := vpp.Listen(socket); err != nil {
		t.Fatal(err)
	}
	r := troupe("", "version", "--vpp", "--vpp-api-socket", socket, "-o", "json")
	var v node.Version
	if err := json.Unmarshal([]byte(r.out), &v); err != nil || v.VPP == nil || v.VPP.Version != "25.10-release" {
		t.Fatalf("%+v, %v", r, err)
	}
	found := map[string]node.VPPFeature{}
	for _, f := range v.VPP.Features {
		found[f.Name] = f
	}
	if f := found["IPv4 services"]; !f.Available || f.Renderer != "nat44" || len(f.Missing) > 0 || f.Without != "" {
		t.Errorf("%+v", f)
	}
	if f := found["source ranges and drops"]; f.Available || f.Without == "" || len(f.Missing) == 0 || f.Missing[0] != (node.VPPMissing{
		Message: "acl_add_replace_ee5c2f18", Why: "the plugin acl is not loaded (plugins in VPP's startup.conf)",
	}) {
		t.Errorf("%+v", f)
	}
	if r := troupe("", "version", "--vpp", "--vpp-api-socket", socket); !strings.Contains(r.out, "VPP 25.10-release\n") || !strings.Contains(r.out, "the plugin acl is not loaded") {
		t.Errorf("%+v", r)
	}
	r = troupe("", "version", "--vpp", "--vpp-api-socket", socket+".none")
	if r.code != 1 || r.out != "" || !strings.Contains(r.errs, "api.sock.none: no such file or directory") || strings.Count(r.errs, "\n") != 1 {
		t.Errorf("%+v", r)
	}
}
