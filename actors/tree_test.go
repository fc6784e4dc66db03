package actors_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/troupe-vpp/troupe/actors"
	"github.com/troupe-vpp/troupe/actors/actorstest"
	"github.com/troupe-vpp/troupe/actors/address"
	"github.com/troupe-vpp/troupe/actors/render/addresses"
	"github.com/troupe-vpp/troupe/vpp/owned"
)

// line is one actor in a drawing of the tree.
var line = regexp.MustCompile(`^((?:\|  )*)\|- (\S+)(.*)$`)

// drawn reads a drawing of the tree, its root included: the paths in its order, and which of them
// are said to be ordered groups.
func drawn(text string) (paths []string, ordered map[string]bool) {
	ordered = map[string]bool{}
	var above []string
	for one := range strings.Lines(text) {
		one = strings.TrimSpace(one)
		if len(paths) == 0 {
			if strings.HasPrefix(one, address.RootName+" ") {
				paths, above = append(paths, address.RootName), []string{address.RootName}
			}
			continue
		}
		m := line.FindStringSubmatch(one)
		if m == nil {
			break
		}
		depth := len(m[1])/len("|  ") + 1
		path := above[depth-1] + "/" + m[2]
		paths, above = append(paths, path), append(above[:depth], path)
		ordered[path] = strings.Contains(m[3], "[ordered]")
	}
	return paths, ordered
}

// TestTreeIsAsDrawn: docs/architecture.md shows the actors that there are, with the one service
// default/web, and says which are ordered groups.
func TestTreeIsAsDrawn(t *testing.T) {
	all := func(d *actors.Deps) {
		d.Addresses = &addresses.Config{Interval: time.Second, Made: func(owned.Object) bool { return true }}
	}
	actorstest.Simulate(t, 1, actorstest.Config{IPv6: true, Deps: all}, func(w *actorstest.World) {
		w.Source.Serve("web", "10.96.0.10")
		w.Settle(time.Minute)
		var alive []string
		groups := map[string]bool{}
		for _, one := range w.System.Snapshot() {
			alive = append(alive, one.Path)
			groups[one.Path] = slices.Contains([]string{"dataplane", "world", "upkeep"}, one.Kind)
		}
		text, err := os.ReadFile("../docs/architecture.md")
		if err != nil {
			t.Fatal(err)
		}
		paths, ordered := drawn(string(text))
		for _, path := range paths {
			if ordered[path] != groups[path] {
				t.Errorf("%s ordered: %v, want %v", path, ordered[path], groups[path])
			}
		}
		slices.Sort(paths)
		if !slices.Equal(paths, alive) {
			t.Errorf("the drawing shows\n%s\nand there are\n%s", strings.Join(paths, "\n"), strings.Join(alive, "\n"))
		}
	})
}
