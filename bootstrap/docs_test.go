package bootstrap

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/troupe-vpp/troupe/actors/chaos/live"
	"github.com/troupe-vpp/troupe/actors/report"
	"github.com/troupe-vpp/troupe/bootstrap/api"
	"github.com/troupe-vpp/troupe/bootstrap/cli"
	"github.com/troupe-vpp/troupe/bootstrap/config"
)

var (
	spans  = regexp.MustCompile("`([^`\n]+)`")
	links  = regexp.MustCompile(`\]\(([^)#\s]+)(?:#[^)]*)?\)`)
	routes = regexp.MustCompile(`^(?:(?:GET|PUT|POST|DELETE) )?(/(?:api/v1/\S+|(?:metrics|readyz|livez|healthz)(?:\?\w+)?))$`)
	files  = regexp.MustCompile(`^(?:(actors|messages|vpp|kube|cluster|bootstrap|deploy|docs|tools)/[\w./-]*|main\.go)$`)
	dotted = regexp.MustCompile(`^([a-z][\w/]*)\.([A-Z]\w*)(?:\.([A-Z]\w*))?$`)
	field  = regexp.MustCompile(`^([a-z]\w*)\.[a-z][\w.]*$`)
	param  = regexp.MustCompile(`\{[^}]*\}`)
)

// TestDocumentsNameWhatExists: paths, links, routes, flags, settings, commands and qualified names
// in the documents are there.
func TestDocumentsNameWhatExists(t *testing.T) {
	root := ".."
	documents, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil || len(documents) < 5 {
		t.Fatalf("%d documents: %v", len(documents), err)
	}
	there := newInventory(t, root)
	for _, document := range append(documents, filepath.Join(root, "README.md")) {
		text := read(t, document)
		for _, link := range links.FindAllStringSubmatch(text, -1) {
			if strings.Contains(link[1], "://") {
				continue
			}
			if _, err := os.Stat(filepath.Join(filepath.Dir(document), link[1])); err != nil {
				t.Errorf("%s: link: %v", filepath.Base(document), err)
			}
		}
		for _, span := range spans.FindAllStringSubmatch(prose(text), -1) {
			if known, ok := there.has(span[1]); known && !ok {
				t.Errorf("%s: there is no `%s`", filepath.Base(document), span[1])
			}
		}
	}
}

// TestIncidentsArePlayed: a script, or the test of capture, runs each command of the chapter
// "Something is wrong", which explains each word of SERVED and STATE.
func TestIncidentsArePlayed(t *testing.T) {
	text := read(t, filepath.Join("..", "docs", "operations.md"))
	_, chapter, _ := strings.Cut(text, "\n## Something is wrong\n")
	chapter, _, _ = strings.Cut(chapter, "\n## ")
	played := read(t, "testdata/script/incidents.txtar") + read(t, "capture_cmd_test.go")
	trees, _, _ := strings.Cut(chapter, "\n### Other faults\n")
	commands := regexp.MustCompile("(?m)^\\| `troupe ([a-z]+(?: --?[a-z-]+| [a-z]+)*)").FindAllStringSubmatch(trees, -1)
	if len(commands) < 10 {
		t.Errorf("%d commands in\n%s", len(commands), trees)
	}
	for _, c := range commands {
		if !strings.Contains(played, "troupe "+c[1]) && !strings.Contains(played, `"`+c[1]+` `) {
			t.Errorf("no test plays troupe %s", c[1])
		}
	}
	for _, word := range api.ServedWords() {
		if row := fmt.Sprintf("\n| `%s` | %s |\n", word, word.Why()); !strings.Contains(chapter, row) {
			t.Errorf("operations.md does not have %s", row)
		}
	}
	for _, state := range api.ServiceStates() {
		if !regexp.MustCompile("(?m)^\\| (`[a-z-]+`, )?`" + string(state) + "`[ ,]").MatchString(chapter) {
			t.Errorf("operations.md does not explain %s", state)
		}
	}
}

// TestFaultKindsAreDocumented: docs/chaos.md shows the command of every kind of fault.
func TestFaultKindsAreDocumented(t *testing.T) {
	text := read(t, filepath.Join("..", "docs", "chaos.md"))
	for _, d := range live.Definitions() {
		if !strings.Contains(text, "\ntroupe chaos "+string(d.Kind)+" ") {
			t.Errorf("chaos.md does not show: troupe chaos %s", d.Kind)
		}
	}
}

// TestArchitectureIsTrue: docs/architecture.md names every package of actors, and the intervals in
// docs/healing.md are the defaults.
func TestArchitectureIsTrue(t *testing.T) {
	root := ".."
	text := read(t, filepath.Join(root, "docs", "architecture.md"))
	packages, err := filepath.Glob(filepath.Join(root, "actors", "*", "doc.go"))
	if err != nil || len(packages) < 10 {
		t.Fatalf("%d packages: %v", len(packages), err)
	}
	for _, p := range packages {
		if name := "`actors/" + filepath.Base(filepath.Dir(p)) + "`"; !strings.Contains(text, name) {
			t.Errorf("architecture.md does not name %s", name)
		}
	}
	text = strings.Join(strings.Fields(read(t, filepath.Join(root, "docs", "healing.md"))), " ")
	healing := config.Defaults().Healing
	for _, claim := range []string{
		fmt.Sprintf("at least for `healing.driftCheckLeast` (%.0f s)", healing.DriftCheckLeast.Duration().Seconds()),
		fmt.Sprintf("at most for `healing.driftCheckInterval` (%.0f min)", healing.DriftCheckInterval.Duration().Minutes()),
		fmt.Sprintf("at least every `healing.rediscoverInterval` (%.0f min)", healing.RediscoverInterval.Duration().Minutes()),
		fmt.Sprintf("for %.0f s (`healing.patience`)", healing.Patience.Duration().Seconds()),
		fmt.Sprintf("not been lost for %.0f s (`api.healthzLostAfter`)", config.Defaults().API.HealthzLostAfter.Duration().Seconds()),
		fmt.Sprintf("repeats its health every %.0f s", report.Heartbeat.Seconds()),
	} {
		if !strings.Contains(text, claim) {
			t.Errorf("healing.md does not say: %s", claim)
		}
	}
}

// TestLineageIsComplete: each exported name of a predecessor stands on the left of its table, and
// everything on the right is there.
func TestLineageIsComplete(t *testing.T) {
	root := ".."
	there := newInventory(t, root)
	left := map[string]map[string]bool{} // by heading
	heading := ""
	for line := range strings.Lines(read(t, filepath.Join(root, "docs", "lineage.md"))) {
		if title, ok := strings.CutPrefix(line, "## "); ok {
			heading = strings.TrimSpace(title)
			left[heading] = map[string]bool{}
			continue
		}
		cells := strings.Split(line, "|")
		if len(cells) != 4 {
			continue
		}
		for _, word := range regexp.MustCompile(`\w+`).FindAllString(cells[1], -1) {
			left[heading][word] = true
		}
		for _, span := range spans.FindAllStringSubmatch(cells[2], -1) {
			if known, ok := there.has(span[1]); !ok && (known || !there.plain(span[1])) {
				t.Errorf("%s: there is no `%s`", heading, span[1])
			}
		}
	}
	for line := range strings.Lines(read(t, "testdata/lineage.txt")) {
		name := strings.TrimSpace(line)
		if title, ok := strings.CutPrefix(name, "## "); ok {
			heading = title
			if left[heading] == nil {
				t.Errorf("no heading %q", title)
			}
		} else if name != "" && !strings.Contains(name, " ") && !left[heading][name] {
			t.Errorf("%s: no row for %s", heading, name)
		}
	}
}

// TestInventory: the inventory misses names that do not exist, so the tests above can fail.
func TestInventory(t *testing.T) {
	there := newInventory(t, "..")
	for span, want := range map[string]bool{
		"actors/tree.go": true, "actors/forest.go": false, "vpp/nat44.Plan": true, "vpp/nat44.Plot": false, "runtime.Context.Go": true, "runtime.Context.Gone": false,
		"troupe get services": true, "troupe gett services": false, "GET /api/v1/tree": true, "GET /api/v1/forest": false, "--node-name": true, "--nude": false,
		"PUT /api/v1/pods/{ns}/{name}/interface": true, "/readyz?verbose": true, "healing.patience": true, "healing.impatience": false, "GET /api/v1/external[/SOURCE]": true,
	} {
		if known, ok := there.has(span); !known || ok != want {
			t.Errorf("%s: known %v, there %v, want %v", span, known, ok, want)
		}
	}
	if there.plain("ServiceSpecial") || !there.plain("ServiceSpec") {
		t.Error("messages are not told from what is none")
	}
}

// inventory has the names that documents may use.
type inventory struct {
	root     string
	declared map[string]map[string]bool // directory -> "Name", "Type.Method"
	// every declared name, every string in a literal that is a word
	words  map[string]bool
	routes map[string]bool
	flags  map[string]bool
}

func newInventory(t *testing.T, root string) *inventory {
	t.Helper()
	i := &inventory{root: root, words: map[string]bool{}, flags: map[string]bool{}}
	i.declared = declarations(t, root)
	for _, names := range i.declared {
		maps.Copy(i.words, names)
	}
	i.routes = map[string]bool{}
	for _, m := range regexp.MustCompile(`"(/api/v1/)?([\w/{}.]+)"[:,]`).FindAllStringSubmatch(read(t, filepath.Join(root, "bootstrap/api/server/routes.go"))+read(t, filepath.Join(root, "bootstrap/connector/connector.go")), -1) {
		i.routes[shape("/"+strings.TrimPrefix(m[2], "/"))] = true
	}
	addFlags(i.flags, newRoot(cli.Streams{}).cmd)
	return i
}

// addFlags collects the flags of a command and of the commands below it.
func addFlags(flags map[string]bool, cmd *cobra.Command) {
	for word := range strings.FieldsSeq(cmd.LocalFlags().FlagUsages()) {
		if strings.HasPrefix(word, "--") {
			flags[word] = true
		}
	}
	for _, sub := range cmd.Commands() {
		addFlags(flags, sub)
	}
}

// shape makes routes comparable: parameters without their names.
func shape(route string) string {
	route, _, _ = strings.Cut(route, "?")
	route, _, _ = strings.Cut(route, "[") // what may be left out
	return param.ReplaceAllString(strings.TrimPrefix(route, "/api/v1"), "{}")
}

// has reports whether a span is of a kind that can be looked up, and whether it is there.
func (i *inventory) has(span string) (known, ok bool) {
	if name, _, _ := strings.Cut(span, "/"); strings.HasPrefix(name, "Test") {
		return true, i.words[name]
	}
	words := strings.Fields(span)
	if one, is := parseInvocation(words); is {
		return true, !strings.HasPrefix(one.command, "(unknown)")
	}
	if m := routes.FindStringSubmatch(span); m != nil {
		want := shape(m[1])
		return true, i.routes[want] || slices.ContainsFunc(slices.Collect(maps.Keys(i.routes)), func(have string) bool {
			return strings.Count(have, "/") == strings.Count(want, "/") && matches(have, want)
		})
	}
	if m := dotted.FindStringSubmatch(span); m != nil {
		name := m[2]
		if m[3] != "" {
			name += "." + m[3]
		}
		dirs := i.directories(m[1])
		return len(dirs) > 0, slices.ContainsFunc(dirs, func(dir string) bool { return i.declared[dir][name] })
	}
	if files.MatchString(span) {
		_, err := os.Stat(filepath.Join(i.root, filepath.FromSlash(span)))
		return true, err == nil
	}
	if strings.HasSuffix(span, ".md") {
		_, err := os.Stat(filepath.Join(i.root, "docs", filepath.Base(span)))
		return true, err == nil
	}
	if m := field.FindStringSubmatch(span); m != nil {
		if section, err := config.Explain(m[1]); err == nil && len(section) > 1 {
			_, err := config.Explain(span)
			return true, err == nil
		}
	}
	if strings.HasPrefix(span, "--") {
		flag, _, _ := strings.Cut(words[0], "=")
		return true, i.flags[flag]
	}
	return false, false
}

// matches reports whether a route with parameters fits a path.
func matches(have, want string) bool {
	a, b := strings.Split(have, "/"), strings.Split(want, "/")
	for n := range a {
		if a[n] != b[n] && a[n] != "{}" {
			return false
		}
	}
	return true
}

// plain reports whether a span without a kind of its own is a declared name, the name of an actor,
// or a method of HTTP.
func (i *inventory) plain(span string) bool {
	return i.words[span] || slices.Contains([]string{"PUT", "GET", "DELETE"}, span)
}

// directories are the directories of the packages that a qualifier can mean: "vpp/nat44", or
// "runtime" for actors/runtime.
func (i *inventory) directories(qualifier string) (dirs []string) {
	for dir := range i.declared {
		if dir == qualifier || strings.HasSuffix(dir, "/"+qualifier) {
			dirs = append(dirs, dir)
		}
	}
	return dirs
}

// declarations are the names of every package, by directory, and the words in its string literals
// and tags.
func declarations(t *testing.T, root string) map[string]map[string]bool {
	t.Helper()
	const tests = "" // no directory
	declared := map[string]map[string]bool{tests: {}}
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && name != root && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" || d.Name() == "tools" || d.Name() == "test") {
			return filepath.SkipDir
		}
		if strings.HasSuffix(name, "_test.go") {
			for _, m := range regexp.MustCompile(`(?m)^func (Test\w+)\(`).FindAllStringSubmatch(read(t, name), -1) {
				declared[tests][m[1]] = true
			}
			return nil
		}
		if d.IsDir() || !strings.HasSuffix(name, ".go") {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, filepath.Dir(name))
		if err != nil {
			return err
		}
		dir := filepath.ToSlash(rel)
		if declared[dir] == nil {
			declared[dir] = map[string]bool{}
		}
		namesIn(file, declared[dir])
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return declared
}

// namesIn adds the declarations of one file and the words that it writes in quotes: names of
// actors, of metrics and of fields.
func namesIn(file *ast.File, names map[string]bool) {
	word := regexp.MustCompile(`\w+`)
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			name := n.Name.Name
			if n.Recv != nil {
				receiver := n.Recv.List[0].Type
				if star, ok := receiver.(*ast.StarExpr); ok {
					receiver = star.X
				}
				if id, ok := receiver.(*ast.Ident); ok {
					name = id.Name + "." + name
				}
			}
			names[name] = true
		case *ast.TypeSpec:
			names[n.Name.Name] = true
		case *ast.ValueSpec:
			for _, id := range n.Names {
				names[id.Name] = true
			}
		case *ast.BasicLit:
			if n.Kind == token.STRING && !strings.Contains(n.Value, " ") || strings.Contains(n.Value, `json:"`) {
				for _, w := range word.FindAllString(n.Value, -1) {
					names[w] = true
				}
			}
		}
		return true
	})
}

// prose is a Markdown text without its blocks of code.
func prose(markdown string) string {
	var b strings.Builder
	for i, part := range strings.Split(markdown, "```") {
		if i%2 == 0 {
			b.WriteString(part)
		}
	}
	return b.String()
}

func read(t *testing.T, name string) string {
	t.Helper()
	content, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// TestPortsOfOthers: no manifest listens at a port of the kubelet or of kube-proxy beside which the
// agents run, also where kube-proxy has it at 127.0.0.1 only.
func TestPortsOfOthers(t *testing.T) {
	others := regexp.MustCompile(`\b(10248|10249|10250|10257|10259)\b`)
	err := filepath.WalkDir(filepath.Join("..", "deploy"), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".yaml" {
			return err
		}
		for line := range strings.Lines(read(t, path)) {
			if others.MatchString(line) && regexp.MustCompile(`(?i)address|hostPort|containerPort`).MatchString(line) {
				t.Errorf("%s: %s", path, line)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
