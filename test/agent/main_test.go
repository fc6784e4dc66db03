package agent_test

import (
	"os"
	"testing"

	"github.com/troupe-vpp/troupe/test/build"
)

// troupe is the path of the program, built once for all stories; written before the first one
// begins.
var troupe string

func TestMain(m *testing.M) { os.Exit(build.WithAgent(&troupe, m.Run)) }
