package runtime

import (
	"log/slog"
	"slices"
	"testing"

	"github.com/asynkron/protoactor-go/actor"
)

// TestRegistryIsSmall: the registry has one bucket, in which what protoactor registered in others
// is found.
func TestRegistryIsSmall(t *testing.T) {
	fresh, sys := actor.NewActorSystem(quietLogging(slog.New(slog.DiscardHandler))), NewSystem(Options{})
	if n := len(sys.proto.ProcessRegistry.LocalPIDs.LocalPIDs); n != 1 {
		t.Errorf("%d buckets", n)
	}
	var known []string
	for _, bucket := range fresh.ProcessRegistry.LocalPIDs.LocalPIDs {
		known = append(known, bucket.Keys()...)
	}
	if !slices.Contains(known, "deadletter") || !slices.Contains(known, "eventstream") {
		t.Errorf("protoactor registers %q", known)
	}
	for _, id := range known {
		if _, ok := sys.proto.ProcessRegistry.GetLocal(id); !ok {
			t.Errorf("%s is lost", id)
		}
	}
}
