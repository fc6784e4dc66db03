package fleet

import (
	"context"
	"io"
	"sync/atomic"
	"testing"
	"time"

	"github.com/troupe-vpp/troupe/bootstrap/cli"
)

// TestSilentNodesHideNoOther: however many nodes hang, all others have their turn before the whole
// time ends, and each node that hangs ends before it.
func TestSilentNodesHideNoOther(t *testing.T) {
	members := make([]member, 5*atOnce)
	for i := range members {
		members[i].client = &cli.Client{}
	}
	good := map[int]bool{len(members) - 1: true, len(members) / 2: true}
	// a node that hangs gives its turn away after 10 ms, and ends after 40 ms
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var answered, ended atomic.Int32
	each(ctx, members, 120*time.Millisecond, io.Discard, func(node context.Context, i int) {
		if good[i] {
			answered.Add(1)
			return
		}
		<-node.Done()
		if ctx.Err() == nil {
			ended.Add(1)
		}
	})
	if answered.Load() != 2 || ended.Load() != int32(len(members)-2) {
		t.Errorf("%d have answered, %d have ended", answered.Load(), ended.Load())
	}
}
