package e2e_test

import (
	"flag"
	"os"
	"strconv"
	"testing"

	"github.com/troupe-vpp/troupe/test/node"
)

func TestMain(m *testing.M) {
	node.Init()
	if err := flag.Set("test.parallel", strconv.Itoa(len(shards))); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}
