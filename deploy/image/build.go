package main

import (
	"context"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/troupe-vpp/troupe/deploy/image/oci"
)

// DefaultName is the name of the image in deploy/kubernetes.
const DefaultName = "troupe.dev/troupe:latest"

// settings of one build.
type settings struct {
	source, file, name string
	platforms          []string // "linux/amd64"
}

// build writes the archive and returns its SHA-256 in hexadecimal.
func build(ctx context.Context, s settings) (string, error) {
	dir, err := os.MkdirTemp("", "troupe-image-")
	if err != nil {
		return "", err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	var images []oci.Image
	for _, p := range s.platforms {
		goos, arch, ok := strings.Cut(p, "/")
		if !ok {
			return "", fmt.Errorf("platform %q is not like linux/amd64", p)
		}
		binary := filepath.Join(dir, goos+"-"+arch)
		if err := compile(ctx, s.source, goos, arch, binary); err != nil {
			return "", err
		}
		content, err := os.ReadFile(binary)
		if err != nil {
			return "", err
		}
		info, err := buildinfo.ReadFile(binary)
		if err != nil {
			return "", fmt.Errorf("read the version of the agent: %w", err)
		}
		images = append(images, image(goos, arch, info.Main.Version, content))
	}
	return write(s.file, s.name, images)
}

// compile builds the agent without what only development needs.
func compile(ctx context.Context, source, goos, arch, output string) error {
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=auto", "-tags", "agent,grpcnotrace", "-ldflags", "-s -w", "-o", output, ".")
	cmd.Dir = source
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+goos, "GOARCH="+arch, "GOFLAGS=")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build the agent for %s/%s: %w\n%s", goos, arch, err, out)
	}
	return nil
}

// image has the agent and the directories that a read-only root must offer: its state, its control
// socket, temporary files, and VPP's sockets.
func image(goos, arch, version string, agent []byte) oci.Image {
	return oci.Image{
		OS: goos, Architecture: arch, Entrypoint: []string{"/troupe"}, User: "65532:65532",
		Env:    []string{"PATH=/"}, // kubectl exec ds/troupe-agent -- troupe get services
		Labels: map[string]string{"org.opencontainers.image.title": "troupe", "org.opencontainers.image.version": version},
		Files: []oci.File{
			{Path: "etc/", Mode: 0o755},
			{Path: "etc/troupe/", Mode: 0o755},
			{Path: "run/", Mode: 0o755},
			{Path: "run/troupe/", Mode: 0o755},
			{Path: "run/vpp/", Mode: 0o755},
			{Path: "tmp/", Mode: 0o1777},
			{Path: "troupe", Mode: 0o755, Content: agent},
			{Path: "var/", Mode: 0o755},
			{Path: "var/lib/", Mode: 0o755},
			{Path: "var/lib/troupe/", Mode: 0o755},
		},
	}
}

// write writes the archive to a file, which is there only when it is complete.
func write(file, name string, images []oci.Image) (sum string, err error) {
	out, err := os.CreateTemp(filepath.Dir(file), filepath.Base(file)+".")
	if err != nil {
		return "", err
	}
	defer func() {
		_ = out.Close()
		_ = os.Remove(out.Name()) // it has another name by now, or is worthless
	}()
	hash := sha256.New()
	if err := oci.Write(io.MultiWriter(out, hash), name, images); err != nil {
		return "", err
	}
	if err := out.Chmod(0o644); err != nil {
		return "", err
	}
	if err := out.Close(); err != nil {
		return "", err
	}
	return hex.EncodeToString(hash.Sum(nil)), os.Rename(out.Name(), file)
}
