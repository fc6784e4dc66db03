package e2e_test

import (
	"os"
	"testing"

	"github.com/troupe-vpp/troupe/test/node"
)

func TestMain(m *testing.M) {
	node.Init()
	os.Exit(m.Run())
}
