package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestLibraries: the paths in what ldd prints.
func TestLibraries(t *testing.T) {
	const printed = "\tlinux-vdso.so.1 (0x00007fe0c5b4f000)\n\tlibc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x00007fe0c4cbb000)\n\t/lib64/ld-linux-x86-64.so.2 (0x00007fe0c5b51000)\n"
	var got []string
	for _, match := range library.FindAllStringSubmatch(printed, -1) {
		got = append(got, match[1])
	}
	if want := []string{"/lib/x86_64-linux-gnu/libc.so.6", "/lib64/ld-linux-x86-64.so.2"}; !slices.Equal(got, want) {
		t.Errorf("libraries %q, want %q", got, want)
	}
}

// TestAssemble: a file of the root, one below directories, and the directories that are mounted
// over.
func TestAssemble(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	image, err := assemble(map[string]string{"/example-cni": file, "/usr/bin/vpp": file}, "/usr/bin")
	if err != nil {
		t.Fatal(err)
	}
	var paths []string
	for _, f := range image.Files {
		paths = append(paths, f.Path)
	}
	const want = "etc/ etc/vpp/ run/ run/vpp/ tmp/ usr/ usr/bin/ var/ var/lib/ var/lib/cni/ example-cni usr/bin/vpp"
	if got := strings.Join(paths, " "); got != want {
		t.Errorf("files %s, want %s", got, want)
	}
}

func TestRefused(t *testing.T) {
	for want, arguments := range map[string][]string{
		"found 0 directories of plugins for ": {"-vpp", filepath.Join(t.TempDir(), "bin", "vpp")},
		"unpack nothing.deb: ":                {"-packages", "nothing.deb"},
	} {
		if err := run(t.Context(), arguments); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v, want %s", arguments, err, want)
		}
	}
}
