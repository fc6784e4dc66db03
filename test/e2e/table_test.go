package e2e_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/troupe-vpp/troupe/test/build"
)

const header = "| Test | VPP 25.10 | VPP 26.06 | kube-proxy | Reason |\n|---|---|---|---|---|\n"

// versions of VPP have a column each, in this order.
var versions = []string{"25.10", "26.06"}

// row is of one test: its name, a result and its date for each version of VPP, the result with
// kube-proxy, and the reason against it.
type row [5]string

// name, kubeProxy and reason are cells of a row. The results are between the first two.
const name, kubeProxy, reason = 0, 3, 4

// passes reports whether there is nothing to compare with kube-proxy.
func (r row) passes() bool {
	return !slices.ContainsFunc(r[name+1:kubeProxy], func(cell string) bool { return strings.HasPrefix(cell, "no ") || strings.HasPrefix(cell, "FAILED") })
}

// results are the rows of the table.
type results struct {
	file string
	vpp  string // version; "" = the tests were played with kube-proxy
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
// or passes in spite of one that is not chance. It does not judge kube-proxy.
func (r *results) add(t *testing.T, played []result) {
	t.Helper()
	if len(played) == 0 {
		t.Error("no test was played")
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	text, rows := r.read(t)
	column := 1 + slices.Index(versions, r.vpp)
	if column == 0 && r.vpp != "" {
		t.Fatalf("%s has no column for VPP %s", r.file, r.vpp)
	}
	for _, one := range played {
		test := strings.TrimPrefix(strings.Join(append(one.ContainerHierarchyTexts, one.LeafNodeText), " "), "[sig-network] ")
		i := slices.IndexFunc(rows, func(old row) bool { return old[name] == test })
		if r.vpp == "" {
			t.Logf("%s: %s: %s", test, one.State, one.Failure.Message)
			if i >= 0 && !rows[i].passes() {
				rows[i][kubeProxy] = one.State
			}
			continue
		}
		if i < 0 {
			i, rows = len(rows), append(rows, row{test})
		}
		said, why := r.judge(t, test, one)
		t.Logf("%s: %s %s", test, said, why)
		is := &rows[i]
		is[column] = said + " " + time.Now().UTC().Format(time.DateOnly)
		if why != "" {
			is[reason] = why
		} else if is.passes() {
			is[kubeProxy], is[reason] = "", ""
		}
	}
	write(t, r.file, text, rows)
}

// judge is the result of a test, and why it did not pass.
func (r *results) judge(t *testing.T, test string, one result) (said, why string) {
	t.Helper()
	why = r.reasons[test]
	switch {
	case one.State == "passed" && why != "" && !strings.HasPrefix(why, "by chance"):
		t.Errorf("%s has passed, but reasons.yaml has a reason against it", test)
	case one.State == "skipped":
		return "not played", firstLine(one.Failure.Message)
	case one.State != "passed" && why != "":
		return "no", why
	case one.State != "passed":
		t.Errorf("%s: %s: %s", test, one.State, one.Failure.Message)
		return "FAILED", firstLine(one.Failure.Message)
	}
	return one.State, ""
}

// failed are expressions for the tests of rows that do not pass, by the test.
func (r *results) failed(t *testing.T) map[string]string {
	t.Helper()
	_, rows := r.read(t)
	all := map[string]string{}
	for _, one := range rows {
		if !one.passes() {
			all[one[name]] = `\[sig-network\] ` + regexp.QuoteMeta(one[name]) + "$"
		}
	}
	return all
}

// firstLine is the beginning of a message, as a cell.
func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return strings.ReplaceAll(line[:min(len(line), 200)], "|", "/")
}

// read returns what is before the table, and its rows.
func (r *results) read(t *testing.T) (text string, rows []row) {
	t.Helper()
	content, err := os.ReadFile(r.file)
	if err != nil {
		t.Fatal(err)
	}
	text, table, found := strings.Cut(string(content), header)
	if !found || !strings.Contains(text, "Kubernetes "+build.Kubernetes()) {
		t.Fatalf("%s has no table of Kubernetes %s", r.file, build.Kubernetes())
	}
	for line := range strings.Lines(table) {
		cells := strings.Split(strings.TrimSuffix(strings.TrimPrefix(line, "| "), " |\n"), " | ")
		if len(cells) != len(row{}) {
			t.Fatalf("%s: not a row: %s", r.file, line)
		}
		rows = append(rows, row(cells))
	}
	return text, rows
}

// write writes the rows by test.
func write(t *testing.T, file, text string, rows []row) {
	t.Helper()
	slices.SortFunc(rows, func(a, b row) int { return strings.Compare(a[name], b[name]) })
	text += header
	for _, r := range rows {
		text += fmt.Sprintf("| %s |\n", strings.Join(r[:], " | "))
	}
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestTable(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "table.md")
	is := func(what, want string) {
		t.Helper()
		if content, err := os.ReadFile(file); err != nil || !strings.HasSuffix(string(content), header+want) {
			t.Fatalf("%s: %v: %s", what, err, content)
		}
	}
	write(t, file, "Kubernetes "+build.Kubernetes()+"\n", nil)
	date := time.Now().UTC().Format(time.DateOnly)
	troupe := &results{file: file, vpp: "26.06", reasons: map[string]string{"b": "why"}}
	troupe.add(t, []result{{LeafNodeText: "b", State: "failed"}, {LeafNodeText: "a", State: "passed"}})
	is("rows of Troupe", "| a |  | passed "+date+" |  |  |\n| b |  | no "+date+" |  | why |\n")
	if failed := slices.Collect(maps.Keys(troupe.failed(t))); !slices.Equal(failed, []string{"b"}) {
		t.Fatalf("kube-proxy plays %v", failed)
	}
	(&results{file: file}).add(t, []result{{LeafNodeText: "a", State: "failed"}, {LeafNodeText: "b", State: "passed"}})
	want := "| a |  | passed " + date + " |  |  |\n| b |  | no " + date + " | passed | why |\n"
	is("kube-proxy beside", want)
	troupe.add(t, []result{{LeafNodeText: "b", State: "failed"}})
	is("Troupe again", want)
	troupe.vpp = "25.10"
	troupe.add(t, []result{{LeafNodeText: "a", State: "passed"}})
	is("another VPP", "| a | passed "+date+" | passed "+date+" |  |  |\n| b |  | no "+date+" | passed | why |\n")
}
