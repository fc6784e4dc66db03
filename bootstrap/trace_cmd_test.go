package bootstrap

import (
	"strings"
	"testing"

	"github.com/troupe-vpp/troupe/bootstrap/api"
	"github.com/troupe-vpp/troupe/bootstrap/api/apitest"
)

func TestTraceCommand(t *testing.T) {
	backend := apitest.New(1)
	a := apitest.Start(t, backend, nil)
	for _, e := range []api.Event{
		{Kind: "service", Actor: "agent/world/registry", Object: "shop/web", Cause: 7, Method: "update", Text: "changed in the source, revision 3 there"},
		{
			Kind: "render", Actor: "agent/dataplane/nat44", Object: "shop/web", Cause: 7, Method: "update", Text: "2 operations on 1 rows",
			Operations: []string{"add-local a", "delete-local b"}, Executed: []string{"add-local a"}, Error: "no",
		},
		{Kind: "link", Actor: "agent/dataplane/link", Text: "VPP connected"},
	} {
		backend.Record(e)
	}
	for args, want := range map[string]string{
		"trace --cause 7": `2026-11-21T08:00:01.000Z  #7  update  agent/world/registry  shop/web  changed in the source, revision 3 there
2026-11-21T08:00:02.000Z  #7  update  agent/dataplane/nat44  shop/web  2 operations on 1 rows  error: no
    planned: add-local a
    planned: delete-local b
    executed: add-local a
`,
		"trace --limit 1":           "2026-11-21T08:00:01.000Z  #7  update  agent/world/registry  shop/web  changed in the source, revision 3 there\n",
		"trace --kind link -o json": `{"seq":3,"time":"2026-11-21T08:00:03Z","kind":"link","actor":"agent/dataplane/link","text":"VPP connected"}` + "\n",
		"trace shop/none":           "",
	} {
		if r := lookAt(a, args); r.code != 0 || r.out != want {
			t.Errorf("%s: %d %s\n%s\nwant\n%s", args, r.code, r.errs, r.out, want)
		}
	}
	if r := lookAt(a, "trace shop/none"); !strings.Contains(r.errs, "no record of the object") {
		t.Errorf("nothing is said of what is not there: %q", r.errs)
	}
	for args, want := range map[string]string{
		"trace --limit -1":     `invalid argument "-1" for "--limit": expected 0 or more`,
		"trace a b":            "accepts at most 1 arg(s)",
		"trace --limit 100000": `limit "100000" is not a number from 1 to 10000`,
	} {
		if r := lookAt(a, args); r.code == 0 || !strings.Contains(r.errs, want) {
			t.Errorf("%s: %d %s, want %q", args, r.code, r.errs, want)
		}
	}
}
