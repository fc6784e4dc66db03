package bootstrap

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/troupe-vpp/troupe/bootstrap/api"
	"github.com/troupe-vpp/troupe/bootstrap/api/apitest"
	"github.com/troupe-vpp/troupe/bootstrap/cli/look"
)

// TestCompare: the changes of the actors since a list was saved, and between two lists.
func TestCompare(t *testing.T) {
	agent := apitest.New(1)
	a := apitest.Start(t, agent, nil)
	list, err := agent.Actors(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	before := filepath.Join(t.TempDir(), "before.json")
	save := func(file string, actors []api.Actor) {
		data, err := json.Marshal(actors)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	save(before, append(list, api.Actor{Path: "agent/world/zzz", State: "idle"}))
	if err := agent.Command(t.Context(), "agent/dataplane/nat44", api.VerbKill); err != nil {
		t.Fatal(err)
	}
	if err := agent.Command(t.Context(), "agent/world", api.VerbSuspend); err != nil {
		t.Fatal(err)
	}
	r := lookAt(a, "actors compare "+before)
	want := `
ACTOR                   CHANGE    STATE                 INCARNATION   PENDING   RECEIVED   FAILURES   BUSY
agent/dataplane/nat44   changed   running               +1            +0        +0         +1         0s
agent/world             changed   running > suspended   +0            +0        +0         +0         0s
agent/world/zzz         gone      -                     -             -         -          -          -
`
	if diff := cmp.Diff(squeeze(want), squeeze(r.out)); diff != "" || r.code != exitOK {
		t.Errorf("exit code %d, %s (-want +got):\n%s", r.code, r.errs, diff)
	}
	empty := filepath.Join(t.TempDir(), "empty.json")
	save(empty, []api.Actor{})
	r = lookAt(a, "actors compare "+empty+" "+before+" -o json")
	var changes []look.ActorChange
	if err := json.Unmarshal([]byte(r.out), &changes); err != nil || len(changes) != len(list)+1 || changes[0].What != "new" || changes[0].Before != nil {
		t.Errorf("%v, %s%s", err, r.out, r.errs)
	}
	for _, file := range []string{filepath.Join(t.TempDir(), "none"), "look_compare_test.go"} {
		if r := lookAt(a, "actors compare "+file); r.code != exitFailed || r.out != "" {
			t.Errorf("%s: exit code %d: %s%s", file, r.code, r.out, r.errs)
		}
	}
}
