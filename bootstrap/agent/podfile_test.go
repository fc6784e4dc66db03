package agent

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/troupe-vpp/troupe/messages"
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
