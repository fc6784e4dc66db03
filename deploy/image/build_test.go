package main

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// TestImage builds the image for this platform twice: the archives are equal, and not larger than
// the agent may be.
func TestImage(t *testing.T) {
	var sums []string
	for _, file := range []string{"first.tar", "second.tar"} {
		path := filepath.Join(t.TempDir(), file)
		var out bytes.Buffer
		if err := run(t.Context(), []string{"-source", "../..", "-o", path, "-platforms", "linux/" + runtime.GOARCH}, &out, io.Discard); err != nil {
			t.Fatal(err)
		}
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
