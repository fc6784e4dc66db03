package messages_test

import (
	"bufio"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestGeneratedCodeIsFresh fails when a .proto file or its generated code was changed without the
// other. The record is written by the generator; CI also runs the generator and looks for
// differences.
func TestGeneratedCodeIsFresh(t *testing.T) {
	record, err := os.Open("generated.sum")
	if err != nil {
		t.Fatal(err)
	}
	defer record.Close()
	seen := map[string]bool{}
	for lines := bufio.NewScanner(record); lines.Scan(); {
		want, name, _ := strings.Cut(lines.Text(), "  ")
		content, err := os.ReadFile(name)
		if err != nil {
			t.Errorf("recorded file: %v", err)
			continue
		}
		if got := fmt.Sprintf("%x", sha256.Sum256(content)); got != want {
			t.Errorf("%s changed since the code was generated; run: go generate ./messages", name)
		}
		seen[name] = true
	}
	sources, err := filepath.Glob("*.proto")
	if err != nil || len(sources) == 0 {
		t.Fatalf("no .proto files: %v", err)
	}
	for _, source := range sources {
		if generated := strings.TrimSuffix(source, ".proto") + ".pb.go"; !seen[source] || !seen[generated] {
			t.Errorf("%s is not recorded with its generated code; run: go generate ./messages", source)
		}
	}
}
