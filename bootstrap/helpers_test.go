package bootstrap

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/troupe-vpp/troupe/bootstrap/cli"
	"github.com/troupe-vpp/troupe/kube/kubetest/casefile"
)

// result is the outcome of a command.
type result struct {
	code      int
	out, errs string
}

// troupe runs the program with arguments and standard input.
func troupe(stdin string, args ...string) result {
	var out, errs bytes.Buffer
	code := execute(context.Background(), args, cli.Streams{In: strings.NewReader(stdin), Out: &out, Errs: &errs})
	return result{code, out.String(), errs.String()}
}

// shared returns the path of a file that lies beside the repository, in a directory "shared" next
// to it or further up; the test is skipped if the file does not exist.
func shared(t *testing.T, name string) string {
	t.Helper()
	for dir := filepath.Dir(casefile.ModuleRoot(t)); ; dir = filepath.Dir(dir) {
		path := filepath.Join(dir, "shared", name)
		if _, err := os.Stat(path); err == nil {
			return path
		}
		if dir == filepath.Dir(dir) {
			t.Skipf("no shared/%s beside the repository or above it", name)
		}
	}
}

// write puts a file into a directory of the test and returns its path.
func write(t *testing.T, dir, name, content string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
