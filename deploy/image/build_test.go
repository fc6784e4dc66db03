package main

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
)

// TestImage builds the image for this platform twice: the archives are equal, and not larger than
// the agent may be.
func TestImage(t *testing.T) {
	var sums, lists []string
	for _, file := range []string{"first.tar", "second.tar"} {
		path := filepath.Join(t.TempDir(), file)
		var out, said bytes.Buffer
		if err := run(t.Context(), []string{"-source", "../..", "-o", path, "-platforms", "linux/" + runtime.GOARCH}, &out, &said); err != nil {
			t.Fatal(err)
		}
		if text := said.String(); !strings.HasPrefix(text, "linux/"+runtime.GOARCH+": building") || !strings.Contains(text, ": built in ") {
			t.Errorf("progress: %s", text)
		}
		list, err := os.ReadFile(sbomFile(path))
		if err != nil {
			t.Fatal(err)
		}
		lists = append(lists, string(list))
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if mib := info.Size() >> 20; mib > 45 {
			t.Errorf("the image has %d MiB, at most 45 are wanted", mib)
		}
		sum, _, _ := strings.Cut(out.String(), " ")
		sums = append(sums, sum)
	}
	if sums[0] != sums[1] || len(sums[0]) != 64 {
		t.Errorf("digests %q", sums)
	}
	var document spdxDocument
	if err := json.Unmarshal([]byte(lists[0]), &document); err != nil || lists[0] != lists[1] {
		t.Errorf("SBOM: %v, or the two differ", err)
	}
	ids := map[string]bool{}
	for _, p := range document.Packages {
		if ids[p.ID] {
			t.Errorf("two packages are %s", p.ID)
		}
		ids[p.ID] = true
	}
	if len(ids) < 30 || len(document.Relationships) != len(ids) || document.Packages[0].LicenseDeclared != License || !strings.Contains(lists[0], "pkg:golang/go.fd.io/govpp@v") {
		t.Errorf("%d packages, %d relationships:\n%.600s", len(ids), len(document.Relationships), lists[0])
	}
}

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
	if !strings.Contains(said.String(), "linux/test: 2 packages compiled in ") {
		t.Errorf("said %s", said.String())
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
