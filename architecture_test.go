package main_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const (
	module      = "github.com/troupe-vpp/troupe"
	mostLines   = 500 // of a source file
	mostInFunc  = 80  // lines
	mostDirect  = 20  // direct dependencies of the agent
	allowedFile = ".ci/dependencies.txt"
)

// floors orders the rooms of the house: a room imports rooms of lower floors only, never its
// neighbours.
var floors = map[string]int{"messages": 0, "kube": 1, "vpp": 1, "cluster": 1, "actors": 2, "bootstrap": 3, "main": 4}

// owners says which rooms, or packages, may import a foreign module, by the longest prefix that
// fits. Tests may import what they like.
var owners = map[string][]string{
	"github.com/asynkron/protoactor-go": {"actors/runtime"},
	"github.com/fsnotify/fsnotify":      {"kube"},
	"github.com/prometheus":             {"bootstrap"},
	"github.com/spf13/cobra":            {"bootstrap"},
	"go.etcd.io":                        {"cluster"},
	// who wires hands the client over
	"go.etcd.io/etcd/client/v3":         {"cluster", "bootstrap"},
	"go.fd.io/govpp":                    {"vpp"},
	"go.uber.org/zap":                   {"cluster"},
	"golang.org/x/net/dns":              {"kube"},
	"google.golang.org/grpc":            {"cluster"}, // options of etcd's connection
	"google.golang.org/protobuf":        {"messages", "kube", "vpp", "cluster", "actors", "bootstrap"},
	"k8s.io":                            {"kube"},
	"k8s.io/api/coordination":           {"cluster", "kube"}, // Leases, a node store
	"k8s.io/apimachinery/pkg":           {"kube", "cluster"},
	"k8s.io/apimachinery/pkg/util/wait": {"kube", "vpp", "cluster"}, // back-off
	"sigs.k8s.io/yaml":                  {"kube", "bootstrap"},
}

// pure lists packages that compute and do nothing else, with what they must therefore not import.
var pure = map[string][]string{
	"kube/service":   {"os", "time", "log/slog", "sync", "math/rand", "math/rand/v2", "context"},
	"kube/normalize": {"os", "log/slog", "sync", "math/rand", "math/rand/v2", "context"},
	"kube/addresses": {"os", "time", "log/slog", "sync", "math/rand", "math/rand/v2", "context"},
	"messages":       {"os", "log/slog", "net", "context"},
}

// source is one Go file of the main module that was written by hand.
type source struct {
	path  string // from the root, with slashes
	room  string
	dir   string
	lines int
	file  *ast.File
	fset  *token.FileSet
}

func (s *source) isTest() bool { return strings.HasSuffix(s.path, "_test.go") }

// sources parses the main module; generated files and other modules are left out.
func sources(t *testing.T) []*source {
	t.Helper()
	var all []*source
	fset := token.NewFileSet()
	err := filepath.WalkDir(".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && name != "." {
			_, err := os.Stat(filepath.Join(name, "go.mod"))
			if err == nil || strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" {
				return filepath.SkipDir
			}
		}
		if d.IsDir() || filepath.Ext(name) != ".go" {
			return nil
		}
		content, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		file, err := parser.ParseFile(fset, name, content, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		if ast.IsGenerated(file) {
			return nil
		}
		s := &source{path: filepath.ToSlash(name), file: file, fset: fset, lines: strings.Count(string(content), "\n")}
		s.dir = path.Dir(s.path)
		s.room, _, _ = strings.Cut(s.dir, "/")
		if s.room == "." {
			s.room = "main"
		}
		all = append(all, s)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 100 {
		t.Fatalf("only %d files: is this the root of the module?", len(all))
	}
	return all
}

func (s *source) imports() []string {
	var paths []string
	for _, i := range s.file.Imports {
		paths = append(paths, strings.Trim(i.Path.Value, `"`))
	}
	return paths
}

// TestArrowsPointDown: main -> bootstrap -> actors -> {kube, vpp, cluster} -> messages. Tests keep
// to it as well.
func TestArrowsPointDown(t *testing.T) {
	for _, s := range sources(t) {
		from, known := floors[s.room]
		if !known && s.room != "deploy" {
			t.Errorf("%s: %q is no room of the house", s.path, s.room)
			continue
		}
		for _, imported := range s.imports() {
			inside, ours := strings.CutPrefix(imported, module+"/")
			if !ours {
				continue
			}
			room, _, _ := strings.Cut(inside, "/")
			to, known := floors[room]
			switch {
			case room == s.room || room == "deploy" && s.room == "bootstrap": // the demo cluster
			case !known || s.room == "deploy":
				t.Errorf("%s imports %s, which is no room below it", s.path, inside)
			case to >= from:
				t.Errorf("%s imports %s: arrows point down only", s.path, inside)
			}
			if s.dir == "actors/runtime" && room != "messages" && room != "actors" {
				t.Errorf("%s imports %s: the runtime knows messages only", s.path, inside)
			}
		}
	}
}

// TestForeignModulesHaveOwners: only one room talks to each library, so that it can be replaced
// there.
func TestForeignModulesHaveOwners(t *testing.T) {
	for _, s := range sources(t) {
		if s.isTest() || strings.HasSuffix(s.dir, "test") { // kubetest, apitest: kits for tests
			continue
		}
		for _, imported := range s.imports() {
			first, _, _ := strings.Cut(imported, "/")
			if !strings.Contains(first, ".") || strings.HasPrefix(imported, module+"/") {
				continue
			}
			rooms, known := ownersOf(imported)
			if !known {
				t.Errorf("%s imports %s, which has no owner: add it to owners if it is necessary", s.path, imported)
			} else if !slices.Contains(rooms, s.room) && !slices.Contains(rooms, s.dir) {
				t.Errorf("%s imports %s, which belongs to %s", s.path, imported, strings.Join(rooms, ", "))
			}
		}
	}
}

// ownersOf finds the rooms of the longest prefix.
func ownersOf(imported string) (rooms []string, known bool) {
	longest := 0
	for prefix, owning := range owners {
		if (imported == prefix || strings.HasPrefix(imported, prefix+"/")) && len(prefix) > longest {
			longest, rooms, known = len(prefix), owning, true
		}
	}
	return rooms, known
}

// TestPureStaysPure: what decides has no clock, no I/O, no goroutine.
func TestPureStaysPure(t *testing.T) {
	for _, s := range sources(t) {
		forbidden, is := pure[s.dir]
		if !is || s.isTest() {
			continue
		}
		for _, imported := range s.imports() {
			if slices.Contains(forbidden, imported) {
				t.Errorf("%s imports %s, but %s is pure", s.path, imported, s.dir)
			}
		}
		if starts(s) {
			t.Errorf("%s starts a goroutine, but %s is pure", s.path, s.dir)
		}
	}
}

// TestHTTPClientsHaveOneMaker: a client of package outbound follows no redirect and sends nothing
// elsewhere.
func TestHTTPClientsHaveOneMaker(t *testing.T) {
	others := map[string][]string{
		"net/http":              {"Client", "DefaultClient", "Get", "Head", "Post", "PostForm"},
		"k8s.io/client-go/rest": {"HTTPClientFor", "RESTClientFor", "UnversionedRESTClientFor"},
	}
	for _, s := range sources(t) {
		if s.isTest() || strings.HasSuffix(s.dir, "test") || s.dir == "kube/outbound" {
			continue
		}
		imports := s.imports()
		ast.Inspect(s.file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.StarExpr: // a pointer to a client is how one is passed on
				return false
			case *ast.SelectorExpr:
				in, is := n.X.(*ast.Ident)
				for imported, names := range others {
					if is && in.Name == path.Base(imported) && slices.Contains(imports, imported) && slices.Contains(names, n.Sel.Name) {
						t.Errorf("%s: %s.%s is not made by package outbound", s.fset.Position(n.Pos()), in.Name, n.Sel.Name)
					}
				}
			}
			return true
		})
	}
}

// TestSizes: what is too long to be read at once is taken apart.
func TestSizes(t *testing.T) {
	for _, s := range sources(t) {
		if s.isTest() {
			continue
		}
		if s.lines > mostLines {
			t.Errorf("%s has %d lines, at most %d", s.path, s.lines, mostLines)
		}
		for _, decl := range s.file.Decls {
			if f, ok := decl.(*ast.FuncDecl); ok {
				if n := s.fset.Position(f.End()).Line - s.fset.Position(f.Pos()).Line + 1; n > mostInFunc {
					t.Errorf("%s: %s has %d lines, at most %d", s.path, f.Name.Name, n, mostInFunc)
				}
			}
		}
	}
}

// TestExportedNamesAreDocumented, each with a sentence that begins with its name or explains the
// group it stands in.
func TestExportedNamesAreDocumented(t *testing.T) {
	for _, s := range sources(t) {
		if s.isTest() || s.file.Name.Name == "main" {
			continue
		}
		for _, decl := range s.file.Decls {
			for _, name := range undocumented(decl) {
				t.Errorf("%s: %s is exported and has no documentation", s.path, name)
			}
		}
	}
}

// undocumented returns the exported names of a declaration that no comment explains.
func undocumented(decl ast.Decl) []string {
	switch d := decl.(type) {
	case *ast.FuncDecl:
		if d.Name.IsExported() && d.Doc == nil && receiverIsExported(d) {
			return []string{d.Name.Name}
		}
	case *ast.GenDecl:
		if d.Doc != nil {
			return nil
		}
		var names []string
		for _, spec := range d.Specs {
			switch one := spec.(type) {
			case *ast.TypeSpec:
				if one.Name.IsExported() && one.Doc == nil {
					names = append(names, one.Name.Name)
				}
			case *ast.ValueSpec:
				for _, name := range one.Names {
					if name.IsExported() && one.Doc == nil && one.Comment == nil {
						names = append(names, name.Name)
					}
				}
			}
		}
		return names
	}
	return nil
}

func receiverIsExported(d *ast.FuncDecl) bool {
	if d.Recv == nil {
		return true
	}
	t := d.Recv.List[0].Type
	for {
		switch one := t.(type) {
		case *ast.StarExpr:
			t = one.X
		case *ast.IndexExpr:
			t = one.X
		case *ast.Ident:
			return one.IsExported()
		default:
			return true
		}
	}
}

// TestEveryPackageIsExplained in one of its files: a doc.go, or the one that it is named after.
func TestEveryPackageIsExplained(t *testing.T) {
	explained := map[string]int{}
	for _, s := range sources(t) {
		if s.isTest() {
			continue
		}
		explained[s.dir] += 0
		if s.file.Doc != nil {
			explained[s.dir]++
		}
	}
	for dir, n := range explained {
		if n != 1 {
			t.Errorf("%s has %d package documentations, want 1", dir, n)
		}
	}
}

// TestGoroutinesAreWatched: a package that starts goroutines looks for leaked ones in its tests.
func TestGoroutinesAreWatched(t *testing.T) {
	starting, watching := map[string]string{}, map[string]bool{}
	for _, s := range sources(t) {
		switch {
		case s.isTest():
			watching[s.dir] = watching[s.dir] || slices.Contains(s.imports(), "go.uber.org/goleak")
		case starts(s):
			starting[s.dir] = s.path
		}
	}
	for dir, file := range starting {
		if !watching[dir] && !strings.HasSuffix(dir, "test") {
			t.Errorf("%s starts goroutines (%s), but no test of it uses goleak", dir, file)
		}
	}
}

// starts reports whether a file has a go statement.
func starts(s *source) bool {
	found := false
	ast.Inspect(s.file, func(n ast.Node) bool {
		_, is := n.(*ast.GoStmt)
		found = found || is
		return !found
	})
	return found
}

// TestDependencies: few, each with a reason, none of the tools, nothing replaced.
func TestDependencies(t *testing.T) {
	direct := directDependencies(t)
	if len(direct) > mostDirect {
		t.Errorf("%d direct dependencies, at most %d", len(direct), mostDirect)
	}
	content, err := os.ReadFile(filepath.FromSlash(allowedFile))
	if err != nil {
		t.Fatal(err)
	}
	allowed := map[string]bool{}
	for n, line := range strings.Split(string(content), "\n") {
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		name, reason, _ := strings.Cut(line, " ")
		if strings.TrimSpace(reason) == "" {
			t.Errorf("%s:%d: %s has no reason", allowedFile, n+1, name)
		}
		allowed[name] = true
		if !slices.Contains(direct, name) {
			t.Errorf("%s:%d: %s is not used", allowedFile, n+1, name)
		}
	}
	for _, name := range direct {
		if !allowed[name] {
			t.Errorf("go.mod requires %s, which %s does not explain", name, allowedFile)
		}
	}
}

// directDependencies reads go.mod and complains of what must not stand there.
func directDependencies(t *testing.T) []string {
	t.Helper()
	content, err := os.ReadFile("go.mod")
	if err != nil {
		t.Fatal(err)
	}
	var direct []string
	inside := false
	for n, line := range strings.Split(string(content), "\n") {
		words := strings.Fields(line)
		where := fmt.Sprintf("go.mod:%d", n+1)
		switch {
		case len(words) == 0:
		case words[0] == "replace" || words[0] == "tool" || words[0] == "exclude" || words[0] == "toolchain":
			t.Errorf("%s: %s has no place in the module of the agent", where, words[0])
		case words[0] == "require" && len(words) > 1 && words[1] == "(":
			inside = true
		case words[0] == ")":
			inside = false
		case inside || words[0] == "require":
			name := strings.TrimPrefix(strings.TrimSpace(line), "require ")
			name, _, _ = strings.Cut(name, " ")
			for _, foreign := range []string{module, "honnef.co/go/tools", "mvdan.cc/gofumpt", "github.com/bufbuild"} {
				if strings.HasPrefix(name, foreign) {
					t.Errorf("%s: %s belongs to another module", where, name)
				}
			}
			if !strings.HasSuffix(line, "// indirect") {
				direct = append(direct, name)
			}
		}
	}
	return direct
}
