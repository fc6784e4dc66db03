package mirror

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/troupe-vpp/troupe/kube/durable"
	"github.com/troupe-vpp/troupe/messages"
)

// TestClaimsAreKept: the ID that the node store confirmed outlives the process, for the same node
// and the same prefix.
func TestClaimsAreKept(t *testing.T) {
	dir := t.TempDir()
	life := func(act func(c *Claims)) {
		t.Helper()
		c := NewClaims(NewStore(dir, durable.Disk{}), quiet())
		act(c)
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		if err := c.Run(ended); err != nil {
			t.Error(err)
		}
	}
	life(func(c *Claims) {
		if id, uid := c.Last("n1", "/p"); id != 0 || uid != "" {
			t.Errorf("before any: %d, %q", id, uid)
		}
		c.Keep(&messages.MirroredClaim{Id: 6, Node: "n1", Uid: "old", Prefix: "/p"})
		c.Keep(&messages.MirroredClaim{Id: 7, Node: "n1", Uid: "u", Prefix: "/p"})
	})
	path := filepath.Join(dir, "claim")
	before, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	life(func(c *Claims) {
		for who, want := range map[[2]string]uint32{{"n1", "/p"}: 7, {"n2", "/p"}: 0, {"n1", "/q"}: 0} {
			if id, _ := c.Last(who[0], who[1]); id != want {
				t.Errorf("%v: %d, want %d", who, id, want)
			}
		}
		c.Keep(&messages.MirroredClaim{Id: 7, Node: "n1", Uid: "u", Prefix: "/p"}) // nothing new
	})
	if after, err := os.Stat(path); err != nil || !os.SameFile(before, after) {
		t.Errorf("it was saved again: %v", err)
	}
	if err := os.WriteFile(path, []byte("garbage"), 0o600); err != nil {
		t.Fatal(err)
	}
	life(func(c *Claims) {
		if id, _ := c.Last("n1", "/p"); id != 0 {
			t.Errorf("from garbage: %d", id)
		}
	})
	if kept, err := os.ReadFile(path + ".damaged"); err != nil || string(kept) != "garbage" {
		t.Errorf("%q, %v", kept, err)
	}
	var none *Claims // without a directory
	none.Keep(&messages.MirroredClaim{Id: 1})
	if id, _ := none.Last("n1", "/p"); id != 0 {
		t.Errorf("from nowhere: %d", id)
	}
}
