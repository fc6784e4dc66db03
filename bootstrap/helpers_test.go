package bootstrap

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/troupe-vpp/troupe/bootstrap/cli"
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

// write puts a file into a directory of the test and returns its path.
func write(t *testing.T, dir, name, content string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
