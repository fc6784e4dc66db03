package agent

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/troupe-vpp/troupe/bootstrap/api"
	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/simulator"
)

func TestPodFileKeepsWhatWasTold(t *testing.T) {
	f := podFile(filepath.Join(t.TempDir(), "data", "pods.json"))
	if told, err := f.Load(); err != nil || len(told.GetItems()) > 0 {
		t.Fatalf("nothing saved: %v, %v", told, err)
	}
	for _, told := range []*messages.Attachments{
		{Items: []*messages.Attachment{{Pod: "a/b", Interface: "tap3"}, {Pod: "a/c", Interface: "tap4"}}}, {},
	} {
		if err := f.Save(told); err != nil {
			t.Fatal(err)
		}
		got, err := f.Load()
		if diff := cmp.Diff(told, got, protocmp.Transform()); err != nil || diff != "" {
			t.Errorf("%v %s", err, diff)
		}
	}
	files, err := os.ReadDir(filepath.Dir(string(f)))
	if err != nil || len(files) != 1 {
		t.Errorf("left behind: %v, %v", files, err)
	}
}

func TestPodFileThatCannotBeReadIsPutAside(t *testing.T) {
	for _, content := range []string{"{", `{"version": 2, "pods": []}`} {
		f := podFile(filepath.Join(t.TempDir(), "pods.json"))
		if err := os.WriteFile(string(f), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := f.Load(); err == nil {
			t.Errorf("%s: no error", content)
		}
		if kept, err := os.ReadFile(string(f) + ".unreadable"); err != nil || string(kept) != content {
			t.Errorf("%s: put aside %q, %v", content, kept, err)
		}
		if told, err := f.Load(); err != nil || len(told.GetItems()) > 0 {
			t.Errorf("%s: after that %v, %v", content, told, err)
		}
	}
	if err := podFile("/dev/null/pods.json").Save(&messages.Attachments{}); err == nil {
		t.Error("saved where nothing can be")
	}
}

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
	eventually(t, "five events under the id of the command", func() bool {
		// the journal is written while the command is answered
		events := must(b.Events(t.Context(), api.EventQuery{Limit: 10, Cause: result.Cause}))(t)
		return len(events.Items) == 5 && events.Items[0].Kind == "command" && events.Items[0].Method == "update"
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
