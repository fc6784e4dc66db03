package bootstrap

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/troupe-vpp/troupe/bootstrap/api/apitest"
)

const externalYAML = `# what the edge wants
apiVersion: troupe.dev/v1alpha1
kind: ExternalConfiguration
identityMappings: [192.168.16.1]
`

// TestExternalCommands applies a layer from a file and from standard input, lists it, and deletes
// it.
func TestExternalCommands(t *testing.T) {
	a := apitest.Start(t, apitest.New(0), nil)
	dir := t.TempDir()
	file, broken := write(t, dir, "edge.yaml", externalYAML), write(t, dir, "broken.yaml", "a: [")
	socket := []string{"--control-socket", a.Socket}
	for _, tt := range []struct {
		stdin string
		args  []string
		code  int
		want  string
	}{
		{"", []string{"external", "list"}, exitOK, "NAME   KIND   SOURCE   STATE   OWNER   WHY\n"},
		{"", []string{"external", "apply", "edge", "-f", file}, exitOK, "edge applied\n"},
		{externalYAML, []string{"external", "apply", "edge-2", "-f", "-"}, exitOK, "edge-2 applied\n"},
		{"", []string{"external", "list", "edge"}, exitOK, "192.168.16.1   identity   edge     in-sync"},
		{"", []string{"external", "list", "-o", "json"}, exitOK, `"source": "edge-2"`},
		{"", []string{"external", "delete", "edge", "-o", "yaml"}, exitOK, "source: edge\n"},
		{"", []string{"external", "delete", "unknown"}, exitOK, "unknown has no layer: nothing was deleted\n"},
		{"", []string{"external", "apply", "edge"}, exitUsage, "expected -f FILE"},
		{"", []string{"external", "apply", "-f", file}, exitUsage, "accepts 1 arg(s)"},
		{"", []string{"external", "apply", "edge", "-f", broken}, exitFailed, "read " + broken},
		{"", []string{"external", "apply", "edge", "-f", filepath.Join(dir, "none")}, exitFailed, os.ErrNotExist.Error()[:4]},
		{"[]", []string{"external", "apply", "edge", "-f", "-"}, exitFailed, "expected an object"},
		{"", []string{"external", "apply", "edge", "-f", "-"}, exitFailed, "expected a document"},
		{"", []string{"external", "delete", "file"}, exitFailed, `source "file": expected a name`},
		{"", []string{"external"}, exitUsage, "expected a command: apply, delete, list"},
	} {
		args := tt.args
		if len(args) > 1 {
			args = append(args, socket...)
		}
		if got := troupe(tt.stdin, args...); got.code != tt.code || !strings.Contains(got.out+got.errs, tt.want) {
			t.Errorf("%s: exit code %d, want %d; output, want one with %q:\n%s%s", strings.Join(tt.args, " "), got.code, tt.code, tt.want, got.out, got.errs)
		}
	}
}
