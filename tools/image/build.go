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
	"runtime/debug"
	"strings"

	"github.com/troupe-vpp/troupe/tools/image/oci"
)

// DefaultName is the name of the image in deploy/kubernetes.
const DefaultName = "troupe.dev/troupe:latest"

// settings of one build.
type settings struct {
	source, file, name string
	platforms          []string // "linux/amd64"
	progress           progress
}

// build writes the archive, and the SBOM beside it, and returns the archive's SHA-256 in
// hexadecimal.
func build(ctx context.Context, s settings) (string, error) {
	dir, err := os.MkdirTemp("", "troupe-image-")
	if err != nil {
		return "", err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	var images []oci.Image
	var builds []*debug.BuildInfo
	for _, p := range s.platforms {
		goos, arch, ok := strings.Cut(p, "/")
		if !ok {
			return "", fmt.Errorf("platform %q is not like linux/amd64", p)
		}
		binary := filepath.Join(dir, goos+"-"+arch)
		if err := compile(ctx, s.progress, s.source, goos, arch, binary); err != nil {
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
		images, builds = append(images, image(goos, arch, info, content)), append(builds, info)
	}
	list, err := sbom(builds)
	if err != nil {
		return "", err
	}
	if err := os.WriteFile(sbomFile(s.file), list, 0o644); err != nil {
		return "", err
	}
	return write(s.file, s.name, images)
}

// sbomFile is the file of the SBOM beside an archive.
func sbomFile(archive string) string { return strings.TrimSuffix(archive, ".tar") + ".spdx.json" }

// push copies the archive with all its platforms to a registry. skopeo has the credentials of
// docker and podman.
func push(ctx context.Context, archive, to string, say io.Writer) error {
	cmd := exec.CommandContext(ctx, "skopeo", "copy", "--all", "oci-archive:"+archive, "docker://"+to)
	cmd.Stdout, cmd.Stderr = say, say
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("push %s (%s): %w", to, strings.Join(cmd.Args, " "), err)
	}
	return nil
}

// compile builds the agent without what only development needs.
func compile(ctx context.Context, p progress, source, goos, arch, output string) error {
	cmd := exec.CommandContext(ctx, "go", "build", "-v", "-trimpath", "-buildvcs=auto", "-tags", "agent,grpcnotrace", "-ldflags", "-s -w", "-o", output, ".")
	cmd.Dir = source
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+goos, "GOARCH="+arch, "GOFLAGS=")
	if err := p.run(cmd, goos+"/"+arch); err != nil {
		return fmt.Errorf("build the agent for %s/%s: %w", goos, arch, err)
	}
	return nil
}

// image has the agent and the directories that a read-only root must offer: its state, its control
// socket, temporary files, and VPP's sockets.
func image(goos, arch string, info *debug.BuildInfo, agent []byte) oci.Image {
	labels := map[string]string{"title": "troupe", "version": info.Main.Version, "source": Source, "licenses": License}
	for label, key := range map[string]string{"revision": "vcs.revision", "created": "vcs.time"} {
		if value := setting(info, key); value != "" {
			labels[label] = value
		}
	}
	standard := map[string]string{}
	for label, value := range labels {
		standard["org.opencontainers.image."+label] = value
	}
	return oci.Image{
		OS: goos, Architecture: arch, Entrypoint: []string{"/troupe"}, User: "65532:65532",
		Env:    []string{"PATH=/"}, // kubectl exec POD -- troupe get services
		Labels: standard,
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
