package fleet

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/troupe-vpp/troupe/bootstrap/api"
)

// file is a file of an archive.
type file struct {
	header tar.Header
	text   string
}

// regular is a regular file.
func regular(name, text string) file {
	return file{tar.Header{Name: name, Mode: 0o600, Size: int64(len(text)), Typeflag: tar.TypeReg}, text}
}

// archive packs files.
func archive(t *testing.T, members ...file) *bytes.Buffer {
	t.Helper()
	var out bytes.Buffer
	packed := gzip.NewWriter(&out)
	files := tar.NewWriter(packed)
	for _, m := range members {
		if err := files.WriteHeader(&m.header); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(files, m.text); err != nil {
			t.Fatal(err)
		}
	}
	if err := files.Close(); err != nil {
		t.Fatal(err)
	}
	if err := packed.Close(); err != nil {
		t.Fatal(err)
	}
	return &out
}

// sparse is an archive of the format of PAX with a file of 1 GiB of holes: its header says so.
func sparse(t *testing.T) *bytes.Buffer {
	t.Helper()
	records := "22 GNU.sparse.major=1\n22 GNU.sparse.minor=0\n38 GNU.sparse.name=nodes/n1/name.json\n34 GNU.sparse.realsize=1073741824\n"
	text := "1\n1073741824\n0\n" // one entry, of no bytes, at the end
	text += strings.Repeat("\x00", 512-len(text))
	var raw bytes.Buffer
	files := tar.NewWriter(&raw)
	// a writer refuses these records, so the header has another type until it is changed
	header := tar.Header{Name: "PaxHeaders/x", Size: int64(len(records)), Typeflag: tar.TypeReg, Format: tar.FormatUSTAR}
	if err := files.WriteHeader(&header); err != nil {
		t.Fatal(err)
	}
	_, _ = io.WriteString(files, records)
	if err := files.Flush(); err != nil {
		t.Fatal(err)
	}
	if err := files.WriteHeader(&tar.Header{Name: "nodes/n1/name.json", Size: int64(len(text)), Typeflag: tar.TypeReg, Format: tar.FormatUSTAR}); err != nil {
		t.Fatal(err)
	}
	_, _ = io.WriteString(files, text)
	if err := files.Close(); err != nil {
		t.Fatal(err)
	}
	block := raw.Bytes()[:512]
	block[156] = tar.TypeXHeader
	copy(block[148:156], "        ")
	sum := 0
	for _, b := range block {
		sum += int(b)
	}
	copy(block[148:156], []byte{'0' + byte(sum>>15&7), '0' + byte(sum>>12&7), '0' + byte(sum>>9&7), '0' + byte(sum>>6&7), '0' + byte(sum>>3&7), '0' + byte(sum&7), 0, ' '})
	var out bytes.Buffer
	packed := gzip.NewWriter(&out)
	_, _ = packed.Write(raw.Bytes())
	if err := packed.Close(); err != nil {
		t.Fatal(err)
	}
	return &out
}

// TestHostileArchive: files => the error of the archive; "" = its node n1 is read.
func TestHostileArchive(t *testing.T) {
	manifest, node := regular("manifest.json", `{"time":"2026-11-28T00:00:00Z"}`), regular("nodes/n1/name.json", `"n1"`)
	link := file{header: tar.Header{Name: "nodes/n1/services.json", Typeflag: tar.TypeSymlink, Linkname: "/etc/shadow"}}
	for name, c := range map[string]struct {
		archive *bytes.Buffer
		err     string
	}{
		"as it is written":           {archive(t, manifest, node), ""},
		"unknown files":              {archive(t, manifest, regular("x", strings.Repeat("x", 1<<20)), regular("nodes/n1/other.json", "{"), regular("nodes/../name.json", "{"), node), ""},
		"sparse":                     {sparse(t), "nodes/n1/name.json: the file is sparse"},
		"no regular file":            {archive(t, manifest, node, link), "nodes/n1/services.json: the file is not a regular one"},
		"a file twice":               {archive(t, manifest, node, node), "nodes/n1/name.json: the file is there twice"},
		"a manifest twice":           {archive(t, manifest, node, manifest), "manifest.json: the file is there twice"},
		"files of another node":      {archive(t, manifest, regular("nodes/n1/name.json", `"n2"`)), "node n1: the files are of another node"},
		"status of another node":     {archive(t, manifest, node, regular("nodes/n1/status.json", `{"node":"n2"}`)), "node n1: the files are of another node"},
		"many tiny objects":          {archive(t, manifest, node, regular("nodes/n1/services.json", "["+strings.Repeat("{},", 9000)+"{}]")), "services: 9003 objects in 27017 bytes: above the limit of size"},
		"another document in a part": {archive(t, manifest, regular("nodes/n1/name.json", `"n1"},{"name":"n2"`)), "node n1: name: invalid character"},
		"no JSON":                    {archive(t, manifest, regular("nodes/n1/name.json", `"n1`)), "node n1: name: "},
		"no manifest":                {archive(t, node), "it has no manifest.json"},
	} {
		_, nodes, err := readArchive(c.archive)
		if c.err == "" && (err != nil || len(nodes) != 1 || nodes[0].Name != "n1") || c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)) {
			t.Errorf("%s: %d nodes, %v", name, len(nodes), err)
		}
	}
}

// TestLimitsOfAnArchive: a file above the limit is refused by its header, and the unpacked archive
// ends at its limit, whoever reads it.
func TestLimitsOfAnArchive(t *testing.T) {
	header := &tar.Header{Name: "nodes/n1/name.json", Size: mostFile + 1, Typeflag: tar.TypeReg}
	if _, err := readFile(strings.NewReader(""), header, nil); err == nil || !strings.Contains(err.Error(), "above the limit of size") {
		t.Errorf("%v", err)
	}
	if text, err := io.ReadAll(&limited{strings.NewReader("12345678"), 7}); string(text) != "1234567" || err == nil {
		t.Errorf("%q, %v", text, err)
	}
}

// TestNames: only names of nodes become parts of paths.
func TestNames(t *testing.T) {
	for text, want := range map[string]bool{
		"n1": true, "ip-10-0-0-1.eu.compute.internal": true, "": false, ".": false, "..": false, "../n1": false, "a/b": false, "a..b": false, "-a": false,
		"a-": false, "a.": false, "A": false, "a\x1b[2J": false, "a\n": false, strings.Repeat("a", 254): false,
	} {
		if got := isName(text); got != want {
			t.Errorf("%q: %t", text, got)
		}
		err := writeArchive(io.Discard, dumpManifest{Time: time.Now()}, []*api.Dump{{Name: text, Status: &api.NodeStatus{Node: text}}})
		if (err == nil) != want {
			t.Errorf("%q is written: %v", text, err)
		}
	}
}
