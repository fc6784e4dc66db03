package e2e_test

import (
	"cmp"
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

const header = "| Test | Result | kube-proxy | VPP | Date |\n|---|---|---|---|---|\n"

// row is of one test with one version of VPP.
type row struct{ test, result, kubeProxy, vpp, date string }

// passes reports whether there is nothing to compare with kube-proxy.
func (r row) passes() bool {
	return r.result == "passed" || strings.HasPrefix(r.result, "not played: ")
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
	for _, one := range played {
		name := strings.TrimPrefix(strings.Join(append(one.ContainerHierarchyTexts, one.LeafNodeText), " "), "[sig-network] ")
		if r.vpp == "" {
			t.Logf("%s: %s: %s", name, one.State, one.Failure.Message)
			for i := range rows {
				if rows[i].test == name && !rows[i].passes() {
					rows[i].kubeProxy = one.State
				}
			}
			continue
		}
		said := r.judge(t, name, one)
		t.Logf("%s: %s", name, said)
		is := row{test: name, result: said, vpp: r.vpp, date: time.Now().UTC().Format(time.DateOnly)}
		i := slices.IndexFunc(rows, func(old row) bool { return old.test == name && old.vpp == r.vpp })
		if i < 0 {
			rows = append(rows, is)
			continue
		}
		if !is.passes() {
			is.kubeProxy = rows[i].kubeProxy
		}
		rows[i] = is
	}
	write(t, r.file, text, rows)
}

// judge is the result of a test, as a cell.
func (r *results) judge(t *testing.T, name string, one result) string {
	t.Helper()
	reason := r.reasons[name]
	switch {
	case one.State == "passed" && reason != "" && !strings.HasPrefix(reason, "by chance"):
		t.Errorf("%s has passed, but reasons.yaml has a reason against it", name)
	case one.State == "skipped":
		return "not played: " + firstLine(one.Failure.Message)
	case one.State != "passed" && reason != "":
		return "no: " + reason
	case one.State != "passed":
		t.Errorf("%s: %s: %s", name, one.State, one.Failure.Message)
		return "FAILED: " + firstLine(one.Failure.Message)
	}
	return one.State
}

// failed are expressions for the tests of rows that do not pass, by the test.
func (r *results) failed(t *testing.T) map[string]string {
	t.Helper()
	_, rows := r.read(t)
	all := map[string]string{}
	for _, one := range rows {
		if !one.passes() {
			all[one.test] = `\[sig-network\] ` + regexp.QuoteMeta(one.test) + "$"
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
		if len(cells) != 5 {
			t.Fatalf("%s: not a row: %s", r.file, line)
		}
		rows = append(rows, row{cells[0], cells[1], cells[2], cells[3], cells[4]})
	}
	return text, rows
}

// write writes the rows by test and VPP.
func write(t *testing.T, file, text string, rows []row) {
	t.Helper()
	slices.SortFunc(rows, func(a, b row) int { return cmp.Or(strings.Compare(a.test, b.test), strings.Compare(a.vpp, b.vpp)) })
	text += header
	for _, r := range rows {
		text += fmt.Sprintf("| %s | %s | %s | %s | %s |\n", r.test, r.result, r.kubeProxy, r.vpp, r.date)
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
	is("rows of Troupe", "| a | passed |  | 26.06 | "+date+" |\n| b | no: why |  | 26.06 | "+date+" |\n")
	if failed := slices.Collect(maps.Keys(troupe.failed(t))); !slices.Equal(failed, []string{"b"}) {
		t.Fatalf("kube-proxy plays %v", failed)
	}
	(&results{file: file}).add(t, []result{{LeafNodeText: "a", State: "failed"}, {LeafNodeText: "b", State: "passed"}})
	want := "| a | passed |  | 26.06 | " + date + " |\n| b | no: why | passed | 26.06 | " + date + " |\n"
	is("kube-proxy beside", want)
	troupe.add(t, []result{{LeafNodeText: "b", State: "failed"}})
	is("Troupe again", want)
}
