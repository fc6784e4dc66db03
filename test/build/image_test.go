package build_test

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/troupe-vpp/troupe/test/build"
)

// TestImage builds the image of the agent for this platform twice: the archives and their SBOMs are
// equal, and an archive is not larger than the agent may be.
func TestImage(t *testing.T) {
	var archives, lists []string
	for range 2 {
		dir := t.TempDir()
		cmd := exec.CommandContext(t.Context(), "go", "run", "./image", "-o", dir+"/troupe.tar", "-platforms", "linux/"+runtime.GOARCH)
		cmd.Dir, cmd.Stderr = filepath.Join(build.Root(), "tools"), t.Output()
		said, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		archive, err := os.ReadFile(filepath.Join(dir, "troupe.tar"))
		list, err2 := os.ReadFile(filepath.Join(dir, "troupe.spdx.json"))
		if err != nil || err2 != nil {
			t.Fatal(err, err2)
		}
		if sum := fmt.Sprintf("%x ", sha256.Sum256(archive)); !strings.HasPrefix(string(said), sum) {
			t.Errorf("the digest is %s: %s", sum, said)
		}
		archives, lists = append(archives, string(archive)), append(lists, string(list))
	}
	if mib := len(archives[0]) >> 20; mib > 45 {
		t.Errorf("the image has %d MiB, at most 45 are wanted", mib)
	}
	if archives[0] != archives[1] || lists[0] != lists[1] {
		t.Error("two builds of the same sources differ")
	}
	var document struct {
		Packages []struct {
			ID      string `json:"SPDXID"`
			License string `json:"licenseDeclared"`
		}
		Relationships []any
	}
	if err := json.Unmarshal([]byte(lists[0]), &document); err != nil {
		t.Fatal(err)
	}
	ids := map[string]bool{}
	for _, p := range document.Packages {
		if ids[p.ID] {
			t.Errorf("two packages are %s", p.ID)
		}
		ids[p.ID] = true
	}
	if len(ids) < 30 || len(document.Relationships) != len(ids) || document.Packages[0].License != "Apache-2.0" || !strings.Contains(lists[0], "pkg:golang/go.fd.io/govpp@v") {
		t.Errorf("%d packages, %d relationships:\n%.600s", len(ids), len(document.Relationships), lists[0])
	}
}
