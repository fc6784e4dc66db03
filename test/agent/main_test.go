package agent_test

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/troupe-vpp/troupe/test/build"
)

// troupe is the path of the program, built once for all stories; written before the first one
// begins.
var troupe string

func TestMain(m *testing.M) { os.Exit(withProgram(m.Run)) }

// withProgram builds the program, calls run and removes it again.
func withProgram(run func() int) (code int) {
	dir, err := os.MkdirTemp("", "troupe")
	if err == nil {
		defer func() { _ = os.RemoveAll(dir) }()
		troupe, err = build.Agent(context.Background(), dir)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return run()
}
