package oci

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"
)

func sample(architecture string) Image {
	return Image{
		OS: "linux", Architecture: architecture, Entrypoint: []string{"/troupe"}, Env: []string{"PATH=/"}, User: "0:0", Labels: map[string]string{"b": "2", "a": "1"},
		Files: []File{{Path: "tmp/", Mode: 0o1777}, {Path: "troupe", Mode: 0o755, Content: []byte("program for " + architecture)}},
	}
}

// unpack returns the files of a tar file.
func unpack(t *testing.T, r io.Reader) map[string]string {
	t.Helper()
	files, archive := map[string]string{}, tar.NewReader(r)
	for {
		head, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(archive)
		if err != nil {
			t.Fatal(err)
		}
		files[head.Name] = string(content)
	}
}

func TestWrite(t *testing.T) {
	images := []Image{sample("amd64"), sample("arm64")}
	var first, second bytes.Buffer
	for _, w := range []*bytes.Buffer{&first, &second} {
		if err := Write(w, "troupe.dev/troupe:v1", images); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(first.Bytes(), second.Bytes()) {
		t.Error("two archives of one image differ")
	}
	files := unpack(t, &first)
	read := func(d descriptor, into any) string {
		t.Helper()
		content := files["blobs/sha256/"+strings.TrimPrefix(d.Digest, "sha256:")]
		sum := sha256.Sum256([]byte(content))
		if "sha256:"+hex.EncodeToString(sum[:]) != d.Digest || len(content) != d.Size {
			t.Fatalf("blob %s of %d bytes is not what its descriptor says: %+v", hex.EncodeToString(sum[:]), len(content), d)
		}
		if into != nil {
			if err := json.Unmarshal([]byte(content), into); err != nil {
				t.Fatal(err)
			}
		}
		return content
	}
	var top, list index
	if err := json.Unmarshal([]byte(files["index.json"]), &top); err != nil {
		t.Fatal(err)
	}
	if name := top.Manifests[0].Annotations["io.containerd.image.name"]; name != "troupe.dev/troupe:v1" {
		t.Errorf("the image has the name %q", name)
	}
	read(top.Manifests[0], &list)
	if len(list.Manifests) != 2 {
		t.Fatalf("%d platforms, want 2", len(list.Manifests))
	}
	for i, d := range list.Manifests {
		var m manifest
		var c imageConfig
		read(d, &m)
		read(m.Config, &c)
		if *d.Platform != (platform{images[i].Architecture, "linux"}) || c.platform != *d.Platform {
			t.Errorf("platform %+v, in the configuration %+v", d.Platform, c.platform)
		}
		if c.Config.User != "0:0" || !slices.Equal(c.Config.Entrypoint, []string{"/troupe"}) || !slices.Equal(c.Config.Env, images[i].Env) || !maps.Equal(c.Config.Labels, images[i].Labels) {
			t.Errorf("configuration %+v", c.Config)
		}
		layer, err := gzip.NewReader(strings.NewReader(read(m.Layers[0], nil)))
		if err != nil {
			t.Fatal(err)
		}
		plain := sha256.New()
		content := unpack(t, io.TeeReader(layer, plain))
		if _, err := io.Copy(plain, layer); err != nil { // what follows the end mark
			t.Fatal(err)
		}
		if want := map[string]string{"tmp/": "", "troupe": "program for " + images[i].Architecture}; !maps.Equal(content, want) {
			t.Errorf("files %v, want %v", content, want)
		}
		if c.RootFS.DiffIDs[0] != digest(plain.Sum(nil)) {
			t.Error("the configuration has another digest of the layer")
		}
	}
}
