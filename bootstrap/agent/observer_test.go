package agent

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/troupe-vpp/troupe/kube"
	"github.com/troupe-vpp/troupe/kube/apiserver"
)

// brokenSource is a source that can never work.
type brokenSource struct{ err error }

// Run satisfies kube.Source.
func (s brokenSource) Run(context.Context, kube.Sink) error { return s.err }

// Refresh satisfies kube.Source.
func (brokenSource) Refresh() {}

// TestASourceThatCannotWorkEndsTheProcess: no restart of an actor could help.
func TestASourceThatCannotWorkEndsTheProcess(t *testing.T) {
	broken := errors.New("broken")
	a, err := startWith(everything(t), quiet(), func(*Agent) (kube.Source, *apiserver.Client, error) { return brokenSource{broken}, nil, nil })
	if err != nil {
		t.Fatal(err)
	}
	defer stop(t, a)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := a.Wait(ctx); !errors.Is(err, broken) {
		t.Errorf("it ended with %v", err)
	}
}
