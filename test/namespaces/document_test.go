package namespaces

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestLayoutsAreDocumented: docs/cni.md has every layout in a row of its table. The cell of NAT44
// says why checks fail there, and nothing that fails in other layouts only.
func TestLayoutsAreDocumented(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "cni.md"))
	if err != nil {
		t.Fatal(err)
	}
	every := map[string]bool{} // reasons, except those of all layouts
	reasons := func(l layout) map[string]bool {
		found := map[string]bool{}
		for _, s := range append([]step{{known: l.known}}, l.steps...) {
			for reason, checks := range s.known {
				if len(checks) > 0 && plain.known[reason] == nil {
					found[reason], every[reason] = true, true
				}
			}
		}
		return found
	}
	for _, l := range layouts {
		reasons(l)
	}
	for _, l := range layouts {
		cell := ""
		for _, line := range strings.Split(string(text), "\n") {
			if cells := strings.Split(line, "|"); len(cells) > 5 && strings.Contains(cells[1], "`"+l.name+"`") {
				cell = strings.TrimSpace(cells[2])
			}
		}
		known := reasons(l)
		if cell == "" || len(known) == 0 && l.only == nil && !strings.HasPrefix(cell, "all") {
			t.Errorf("layout %s has the cell %q, and every check holds", l.name, cell)
		}
		for reason := range every {
			if strings.Contains(cell, reason) != known[reason] {
				t.Errorf("layout %s: %q is in its cell %q: %t, want %t", l.name, reason, cell, !known[reason], known[reason])
			}
		}
	}
	for reason := range plain.known {
		if !strings.Contains(string(text), reason) {
			t.Errorf("docs/cni.md does not say %q", reason)
		}
	}
}
