package agent

import (
	"context"
	"errors"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/troupe-vpp/troupe/bootstrap/api"
	"github.com/troupe-vpp/troupe/vpp/simulator"
)

// TestAttachPodOfARunningAgent goes all the way, and over a restart of the process.
func TestAttachPodOfARunningAgent(t *testing.T) {
	cfg := everything(t)
	cfg.DataDir = t.TempDir()
	a := run(t, cfg)
	ready(t, a)
	b := a.Backend()
	if _, err := a.Simulator().AddInterfaceSpec(simulator.InterfaceSpec{Name: "memif0", Up: true}); err != nil {
		t.Fatal(err)
	}
	result := must(b.AttachPod(t.Context(), "shop/new", "memif0"))(t)
	if result.Interface != "memif0" || result.Cause == 0 {
		t.Errorf("%+v", result)
	}
	set := must(b.Interfaces(t.Context()))(t)
	found := false
	for _, i := range set.Items {
		found = found || i.Name == "memif0" && i.Kind == "pod" && i.Frontend && cmp.Equal(i.Pods, []string{"shop/new"})
	}
	if !found {
		t.Errorf("interfaces %+v", set.Items)
	}
	eventually(t, "four events under the id of the command", func() bool {
		// the journal is written while the command is answered
		events := must(b.Events(t.Context(), api.EventQuery{Limit: 10, Cause: result.Cause}))(t)
		return len(events.Items) == 4 && events.Items[0].Kind == "command" && events.Items[0].Method == "update"
	})
	if _, err := b.AttachPod(t.Context(), "shop/other", "memif9"); !errors.Is(err, api.ErrConflict) {
		t.Errorf("an interface that is not there: %v", err)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := b.AttachPod(gone, "shop/other", "memif9"); !errors.Is(err, api.ErrUnavailable) {
		t.Errorf("not ended by its context: %v", err)
	}
	if told := must(podFile(filepath.Join(cfg.DataDir, "pods.json")).Load())(t); len(told.GetItems()) != 1 {
		t.Errorf("kept %v", told)
	}
	if detached := must(b.AttachPod(t.Context(), "shop/new", ""))(t); detached.Interface != "" {
		t.Errorf("%+v", detached)
	}
}
