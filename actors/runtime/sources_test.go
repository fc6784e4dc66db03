package runtime

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// forbidden are the identifiers of protoactor that this package does not use, and why. It shows
// that the pitfalls P12, P13, P14, P15, P16, P17, P20 and P21 can not apply.
var forbidden = map[string]string{
	"Bounded":                       "P13: a full mailbox lets the sender spin",
	"BoundedDropping":               "P12: spins for ever after it has dropped a message",
	"Unbounded":                     "the mailbox is ours",
	"UnboundedPriority":             "loses the priority of requests, 2.5 KB",
	"UnboundedLockfree":             "the mailbox is ours",
	"RequestFuture":                 "P14, P15, P16",
	"StopFuture":                    "P14, P15, P16",
	"PoisonFuture":                  "P14, P15, P16",
	"NewFuture":                     "P14, P15, P16",
	"SetReceiveTimeout":             "P17: data race",
	"ReceiveTimeout":                "P17: data race",
	"ReenterAfter":                  "P20: runs the closure of a dead incarnation",
	"Stash":                         "last in, first out, and only on restart",
	"WithMetricProviders":           "P21: does not work",
	"WithDefaultPrometheusProvider": "P21: does not work, and listens on a port",
	"Watch":                         "a parent gets Terminated twice",
	"NewOneForOneStrategy":          "stops the child instead of escalating",
	"NewAllForOneStrategy":          "P9: crashes the process at the root",
	"NewExponentialBackoffStrategy": "linear, without cap",
	"NewRestartingStrategy":         "no budget",
	"ResumeChildren":                "P8",
	"GetMessages":                   "batches are delivered twice",
	"WithReceiverMiddleware":        "180 bytes for each actor",
	"SubscribeWithPredicate":        "data race",
}

// parseSources parses the files of this package that are not tests.
func parseSources(t *testing.T) (*token.FileSet, map[string]*ast.File) {
	t.Helper()
	names, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	fset, files := token.NewFileSet(), map[string]*ast.File{}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		source, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		file, err := parser.ParseFile(fset, name, source, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		files[name] = file
	}
	if len(files) < 10 {
		t.Fatalf("only %d files", len(files))
	}
	return fset, files
}

// TestPitfallP12P13P21ForbiddenAPI: the defective parts of protoactor are not used at all.
func TestPitfallP12P13P21ForbiddenAPI(t *testing.T) {
	fset, files := parseSources(t)
	for _, file := range files {
		ast.Inspect(file, func(n ast.Node) bool {
			if s, ok := n.(*ast.SelectorExpr); ok {
				if why, bad := forbidden[s.Sel.Name]; bad {
					t.Errorf("%s: %s: %s", fset.Position(s.Pos()), s.Sel.Name, why)
				}
			}
			return true
		})
	}
}

// TestGoStatements: goroutines are started in one place for actors (they are owned and recovered
// there), in a simulation instead of it, and nowhere else.
func TestGoStatements(t *testing.T) {
	owners := map[string]bool{"incarnation.go": true, "coroutine.go": true}
	fset, files := parseSources(t)
	for name, file := range files {
		ast.Inspect(file, func(n ast.Node) bool {
			if g, ok := n.(*ast.GoStmt); ok && !owners[name] {
				t.Errorf("%s: go statement", fset.Position(g.Pos()))
			}
			return true
		})
	}
}

// TestSizes: one concept in a file, one thought in a function.
func TestSizes(t *testing.T) {
	const maxFile, maxFunc = 500, 80
	fset, files := parseSources(t)
	for name, file := range files {
		if n := fset.Position(file.End()).Line; n > maxFile {
			t.Errorf("%s has %d lines", name, n)
		}
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok {
				if n := fset.Position(f.End()).Line - fset.Position(f.Pos()).Line + 1; n > maxFunc {
					t.Errorf("%s: %s has %d lines", name, f.Name, n)
				}
			}
		}
	}
}
