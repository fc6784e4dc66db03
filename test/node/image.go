package node

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/troupe-vpp/troupe/test/build"
)

// PodImage is the image of sandboxes, and of pods that answer at an address (see command pod).
const PodImage = "troupe.test/pod:1"

// podImage builds the image and returns the path of its archive.
func podImage(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	file, archive := filepath.Join(dir, "pod"), filepath.Join(dir, "pod.tar")
	if err := build.Static(t.Context(), file, "./node/pod"); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(file)
	if err == nil {
		err = WriteImage(archive, PodImage, map[string][]byte{"pod": content}, "/pod")
	}
	if err != nil {
		t.Fatalf("make image of pods: %v", err)
	}
	return archive
}

// WriteImage writes an OCI archive with an image of executable files, by their paths without the
// first slash, that runs a program, and this with arguments if the pod has none.
func WriteImage(archive, name string, files map[string][]byte, program string, arguments ...string) error {
	var layer, out bytes.Buffer
	if err := pack(&layer, files); err != nil {
		return err
	}
	blobs := map[string][]byte{}
	type object = map[string]any
	put := func(kind string, content []byte) object {
		sum := fmt.Sprintf("%x", sha256.Sum256(content))
		blobs["blobs/sha256/"+sum] = content
		return object{"mediaType": "application/vnd.oci.image." + kind, "digest": "sha256:" + sum, "size": len(content)}
	}
	encode := func(v object) []byte {
		content, _ := json.Marshal(v) // strings and numbers
		return content
	}
	content := put("layer.v1.tar", layer.Bytes())
	config := put("config.v1+json", encode(object{
		"architecture": runtime.GOARCH, "os": "linux", "config": object{"Entrypoint": []string{program}, "Cmd": arguments},
		"rootfs": object{"type": "layers", "diff_ids": []any{content["digest"]}},
	}))
	manifest := put("manifest.v1+json", encode(object{"schemaVersion": 2, "config": config, "layers": []any{content}}))
	manifest["annotations"] = object{"io.containerd.image.name": name}
	blobs["oci-layout"] = encode(object{"imageLayoutVersion": "1.0.0"})
	blobs["index.json"] = encode(object{"schemaVersion": 2, "manifests": []any{manifest}})
	if err := pack(&out, blobs); err != nil {
		return err
	}
	return os.WriteFile(archive, out.Bytes(), 0o600)
}

// pack writes an archive of executable files.
func pack(to *bytes.Buffer, files map[string][]byte) error {
	archive := tar.NewWriter(to)
	for name, content := range files {
		if err := archive.WriteHeader(&tar.Header{Name: name, Mode: 0o755, Size: int64(len(content))}); err != nil {
			return err
		}
		if _, err := archive.Write(content); err != nil {
			return err
		}
	}
	return archive.Close()
}
