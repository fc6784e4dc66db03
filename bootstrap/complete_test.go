package bootstrap

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/troupe-vpp/troupe/bootstrap/api/apitest"
)

// TestCompletion: the shell gets the names that the agent has now, and the values of flags; without
// an agent nothing, and no error.
func TestCompletion(t *testing.T) {
	a := apitest.Start(t, apitest.New(12), nil)
	for typed, want := range map[string][]string{ // the shell selects among the values of flags
		"explain shop/service-01":                {"shop/service-010", "shop/service-011"},
		"get service shop/service-00":            {"shop/service-000", "shop/service-001", "shop/service-002", "shop/service-003", "shop/service-004", "shop/service-005", "shop/service-006", "shop/service-007", "shop/service-008", "shop/service-009"},
		"trace shop/service-011":                 {"shop/service-011"},
		"actors show agent/data":                 {"agent/dataplane", "agent/dataplane/nat44"},
		"get services --state qu":                {"quarantined", "failed", "pending", "not-served", "partly", "in-sync"},
		"resync --method up":                     {"full", "upstream", "downstream"},
		"get services -o w":                      {"table", "wide", "json", "yaml"},
		"explain shop/service-000 shop/service-": {},
	} {
		args := strings.Fields(typed)
		complete := append([]string{"__complete"}, args[:len(args)-1]...)
		if args[0] != "resync" {
			complete = append(complete, "--address", a.Address)
		}
		if len(args) > 2 && strings.HasPrefix(args[len(args)-2], "-") {
			// the value of a flag follows it
			complete = append(append([]string{"__complete"}, args[:len(args)-2]...), args[len(args)-2])
		}
		r := troupe("", append(complete, args[len(args)-1])...)
		got := []string{}
		for line := range strings.Lines(r.out) {
			if !strings.HasPrefix(line, ":") {
				got = append(got, strings.TrimSpace(line))
			}
		}
		if diff := cmp.Diff(want, got); diff != "" || r.code != exitOK {
			t.Errorf("%s (-want +got):\n%s%s", typed, diff, r.errs)
		}
	}
	if r := troupe("", "__complete", "explain", "--address", "127.0.0.1:1", ""); r.code != exitOK || !strings.HasPrefix(r.out, ":4") {
		t.Errorf("%+v", r)
	}
	if r := troupe("", "__complete", "--address", a.Address, "explain", "shop/service-011"); !strings.HasPrefix(r.out, "shop/service-011\n") {
		t.Errorf("flags before the command: %+v", r)
	}
	if r := troupe("", "completion", "bash"); r.code != exitOK || !strings.Contains(r.out, "__start_troupe") {
		t.Errorf("%d %s", r.code, r.errs)
	}
}
