package look

import (
	"strings"
	"testing"
	"time"

	"github.com/troupe-vpp/troupe/bootstrap/api"
	"github.com/troupe-vpp/troupe/bootstrap/cli"
)

// TestReadingNamesFrontends: the objects of a diff decide which frontends it concerns.
func TestReadingNamesFrontends(t *testing.T) {
	for object, want := range map[string]bool{
		"10.96.0.1:80/TCP": true, "10.96.0.1/32": true, "10.96.0.1:8080/TCP": false, "10.96.0.0/12": false, "": false, "10.96.0.11/32": false,
	} {
		if concerns(object, "10.96.0.1:80/TCP") != want {
			t.Errorf("%s: %v", object, !want)
		}
	}
}

// TestDiffSaysItsAge: over TCP a reading may belong to another client; the output shows the age of
// an old one.
func TestDiffSaysItsAge(t *testing.T) {
	for age, want := range map[time.Duration]string{
		0:               "nat44 VPP is in the desired state",
		3 * time.Second: "nat44 VPP is in the desired state VPP was read 3s ago; --control-socket PATH reads it now",
	} {
		diff := api.Diff{Time: time.Now().Add(-age), Renderers: []api.RendererDiff{{Renderer: "nat44"}}}
		var out strings.Builder
		table := cli.Format("wide")
		if err := table.Print(&out, diff, func(c *cli.Columns) { diffTable(c, diff) }); err != nil || strings.Join(strings.Fields(out.String()), " ") != want {
			t.Errorf("%s: %q, %v", age, strings.Join(strings.Fields(out.String()), " "), err)
		}
	}
}
