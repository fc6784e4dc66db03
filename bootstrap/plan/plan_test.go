package plan

import (
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/troupe-vpp/troupe/kube/normalize"
	"github.com/troupe-vpp/troupe/messages"
)

func TestLastAddress(t *testing.T) {
	for _, tt := range []struct {
		cidrs []string
		want  string
	}{
		{[]string{"10.1.1.0/24"}, "10.1.1.254"},
		{[]string{"10.1.0.0/16"}, "10.1.255.254"},
		{[]string{"10.1.1.64/26"}, "10.1.1.126"},
		{[]string{"10.1.1.77/26"}, "10.1.1.126"},
		{[]string{"10.1.1.4/30"}, "10.1.1.6"},
		{[]string{"fd00::/64", "10.0.0.0/8"}, "10.255.255.254"},
		{[]string{"10.1.1.4/31", "10.1.1.0/24"}, "10.1.1.254"},
		{[]string{"fd00::/64"}, ""},
		{[]string{"nonsense"}, ""},
		{nil, ""},
	} {
		want, _ := netip.ParseAddr(tt.want)
		if got := lastAddress(tt.cidrs); got != want {
			t.Errorf("%v: %s, want %s", tt.cidrs, got, want)
		}
	}
}

func TestUnknownNode(t *testing.T) {
	objects := &normalize.Objects{Nodes: []*messages.Node{{Name: "b"}, {Name: "a"}}}
	_, _, err := Build(objects, Options{Node: "c"})
	if !errors.Is(err, ErrUnknownNode) || err.Error() != `unknown node "c": the input holds a, b` {
		t.Errorf("error %v", err)
	}
}

// TestEmptyCluster: lists are arrays, not null.
func TestEmptyCluster(t *testing.T) {
	report, problems, err := Build(&normalize.Objects{Nodes: []*messages.Node{{Name: "a"}}}, Options{Node: "a"})
	if err != nil || len(problems) > 0 {
		t.Fatal(err, problems)
	}
	if report.Frontends == nil || report.HealthChecks == nil || report.Rows == nil || report.Approximations == nil {
		t.Errorf("a list is nil: %+v", report)
	}
}

func TestExpand(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"b.yaml", "a.json", "c.yml", ".x.yaml", "notes.md"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "d.yaml"), 0o700); err != nil {
		t.Fatal(err)
	}
	got, err := expand(dir)
	want := []string{filepath.Join(dir, "a.json"), filepath.Join(dir, "b.yaml"), filepath.Join(dir, "c.yml")}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v, files (-want +got):\n%s", err, diff)
	}
}

// TestStdinOnce: standard input stands among files, under its name in problems.
func TestStdinOnce(t *testing.T) {
	_, problems, err := Read([]string{Stdin}, strings.NewReader("apiVersion: v1\nkind: Node\nmetadata: {}\n"))
	if err != nil || len(problems) == 0 || problems[0].GetSource() != "stdin" {
		t.Errorf("%v %v", problems, err)
	}
}
