package main

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
)

// TestLabels: the labels name version, revision, source and license.
func TestLabels(t *testing.T) {
	info := &debug.BuildInfo{Main: debug.Module{Version: "v1.2.3"}, Settings: []debug.BuildSetting{{Key: "vcs.revision", Value: "abc"}}}
	want := map[string]string{
		"org.opencontainers.image.title": "troupe", "org.opencontainers.image.version": "v1.2.3", "org.opencontainers.image.revision": "abc",
		"org.opencontainers.image.source": Source, "org.opencontainers.image.licenses": License,
	}
	if diff := cmp.Diff(want, image("linux", "amd64", info, nil).Labels); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
}

// TestProgress: a build that takes a while says how many packages it has compiled; the output of
// one that fails is in the error.
func TestProgress(t *testing.T) {
	defer goleak.VerifyNone(t)
	var said bytes.Buffer
	p := progress{to: &said, every: 50 * time.Millisecond}
	if err := p.run(exec.Command("sh", "-c", "echo a; echo b; sleep 0.3"), "linux/test"); err != nil {
		t.Fatal(err)
	}
	text := said.String()
	if !strings.HasPrefix(text, "linux/test: building") || !strings.Contains(text, "linux/test: 2 packages compiled in ") || !strings.Contains(text, "linux/test: built in ") {
		t.Errorf("said %s", text)
	}
	if err := p.run(exec.Command("sh", "-c", "echo undefined: x; exit 1"), "linux/test"); err == nil || !strings.Contains(err.Error(), "undefined: x") {
		t.Errorf("error %v", err)
	}
}

// TestPush: skopeo gets the archive and the name in the registry.
func TestPush(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "skopeo"), []byte("#!/bin/sh\necho \"$@\"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":/bin:/usr/bin")
	var said bytes.Buffer
	if err := push(t.Context(), "troupe.tar", "registry.example.com/troupe:v1", &said); err != nil || said.String() != "copy --all oci-archive:troupe.tar docker://registry.example.com/troupe:v1\n" {
		t.Errorf("%q, %v", said.String(), err)
	}
}

func TestRefused(t *testing.T) {
	for name, tc := range map[string]struct {
		arguments []string
		want      string
	}{
		"no architecture": {[]string{"-platforms", "linux"}, `platform "linux" is not like linux/amd64`},
		"an argument":     {[]string{"troupe.tar"}, `unexpected argument "troupe.tar"`},
		"no repository":   {[]string{"-source", t.TempDir(), "-platforms", "linux/amd64"}, "build the agent for linux/amd64: "},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "troupe.tar")
			err := run(t.Context(), append([]string{"-o", file}, tc.arguments...), io.Discard, io.Discard)
			if err == nil || !strings.HasPrefix(err.Error(), tc.want) {
				t.Errorf("error %v, want %q", err, tc.want)
			}
			if _, err := os.Stat(file); !os.IsNotExist(err) {
				t.Errorf("there is an archive: %v", err)
			}
		})
	}
}
