package e2e_test

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/troupe-vpp/troupe/test/build"
)

const header = "| Test | Result | VPP | Date |\n|---|---|---|---|\n"

// results are the rows of the table.
type results struct {
	file string
	vpp  string // version
	// reasons of reasons.yaml, by the test
	reasons map[string]string

	mutex sync.Mutex // of the file
}

// reasons reads reasons.yaml.
func reasons(t *testing.T) (all map[string]string) {
	t.Helper()
	content, err := os.ReadFile("reasons.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.UnmarshalStrict(content, &all); err != nil {
		t.Fatal(err)
	}
	return all
}

// add writes rows of tests, and fails for each that did not pass without a reason in reasons.yaml,
// or passes in spite of one that is not chance.
func (r *results) add(t *testing.T, played []result) {
	t.Helper()
	if len(played) == 0 {
		t.Error("no test was played")
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	var rows []string
	for _, one := range played {
		name := strings.TrimPrefix(strings.Join(append(one.ContainerHierarchyTexts, one.LeafNodeText), " "), "[sig-network] ")
		said, reason := one.State, r.reasons[name]
		switch {
		case one.State == "passed" && reason != "" && !strings.HasPrefix(reason, "by chance"):
			t.Errorf("%s has passed, but reasons.yaml has a reason against it", name)
		case one.State == "skipped":
			said = "not played: " + firstLine(one.Failure.Message)
		case one.State != "passed" && reason != "":
			said = "no: " + reason
		case one.State != "passed":
			said = "FAILED: " + firstLine(one.Failure.Message)
			t.Errorf("%s: %s: %s", name, one.State, one.Failure.Message)
		}
		t.Logf("%s: %s", name, said)
		rows = append(rows, fmt.Sprintf("| %s | %s | %s | %s |", name, said, r.vpp, time.Now().UTC().Format(time.DateOnly)))
	}
	write(t, r.file, rows)
}

// firstLine is the beginning of a message, as a cell.
func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return strings.ReplaceAll(line[:min(len(line), 200)], "|", "/")
}

// write puts the rows into the table. A row of another test, or with another version of VPP, stays.
func write(t *testing.T, file string, rows []string) {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	text, table, found := strings.Cut(string(content), header)
	if !found || !strings.Contains(text, "Kubernetes "+build.Kubernetes()) {
		t.Fatalf("%s has no table of Kubernetes %s", file, build.Kubernetes())
	}
	all := map[string]string{} // by test and VPP
	for _, line := range append(strings.Split(table, "\n"), rows...) {
		if cells := strings.Split(line, " | "); len(cells) == 4 {
			all[cells[0]+" | "+cells[2]] = line
		}
	}
	text += header
	for _, key := range slices.Sorted(maps.Keys(all)) {
		text += all[key] + "\n"
	}
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}
