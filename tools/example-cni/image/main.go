// Command image builds the image of the example CNI: the program example-cni, VPP with the plugins
// that services need, and ip(8), with the libraries of each. VPP comes from Debian packages or from
// this machine, the rest from this machine:
//
//	go -C tools run ./example-cni/image -packages vpp.deb,libvppinfra.deb,...
//	go -C tools run ./example-cni/image -vpp /usr/bin/vpp
//
// The archive has the layout of OCI, and an image for this machine's platform.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"

	"github.com/troupe-vpp/troupe/tools/image/oci"
)

// plugins of VPP that the image has; the file of one may be missing if it is optional.
var plugins = map[string]bool{ // required
	"af_packet_plugin.so": true, "nat_plugin.so": true, "acl_plugin.so": true, "cnat_plugin.so": true, "ping_plugin.so": false, "vrrp_plugin.so": false,
}

func main() {
	if err := run(context.Background(), os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, arguments []string) error {
	flags := flag.NewFlagSet("image", flag.ContinueOnError)
	file := flags.String("o", "../example-vpp.tar", "write the archive to `FILE`")
	name := flags.String("name", "troupe.dev/example-vpp:latest", "name of the image")
	source := flags.String("source", ".", "`DIR` of the module with example-cni")
	packages := flags.String("packages", "", "Debian packages of VPP, `FILE,...`")
	vpp := flags.String("vpp", "/usr/bin/vpp", "`FILE` of VPP, with vppctl beside it, instead of packages")
	dir := flags.String("plugins", "", "`DIR` of VPP's plugins, by default the one that VPP itself would use")
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	scratch, err := os.MkdirTemp("", "example-cni-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(scratch) }()
	root := ""
	if *packages != "" {
		root = filepath.Join(scratch, "root")
		*vpp = filepath.Join(root, "usr", "bin", "vpp")
		for _, file := range strings.Split(*packages, ",") {
			if out, err := exec.CommandContext(ctx, "dpkg-deb", "-x", file, root).CombinedOutput(); err != nil {
				return fmt.Errorf("unpack %s: %w: %s", file, err, out)
			}
		}
	}
	if *dir == "" {
		// the pattern is valid
		found, _ := filepath.Glob(filepath.Join(filepath.Dir(filepath.Dir(*vpp)), "lib", "*", "vpp_plugins"))
		if len(found) != 1 {
			return fmt.Errorf("found %d directories of plugins for %s: name one by -plugins", len(found), *vpp)
		}
		*dir = found[0]
	}
	program := filepath.Join(scratch, "example-cni")
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", program, "./example-cni")
	build.Dir, build.Env = *source, append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("build example-cni: %w\n%s", err, out)
	}
	files, err := collect(ctx, root, *vpp, *dir)
	if err != nil {
		return err
	}
	files["/example-cni"] = program
	image, err := assemble(files, strings.TrimPrefix(filepath.Dir(*vpp), root))
	if err != nil {
		return err
	}
	out, err := os.Create(*file)
	if err != nil {
		return err
	}
	return errors.Join(oci.Write(out, *name, []oci.Image{image}), out.Close())
}

// collect finds the files of this machine, and of the packages that are unpacked in root, by their
// paths in the image.
func collect(ctx context.Context, root, vpp, dir string) (map[string]string, error) {
	ip, err := exec.LookPath("ip")
	if err != nil {
		return nil, fmt.Errorf("find ip(8): %w", err)
	}
	files := map[string]string{"/bin/ip": ip}
	objects := []string{ip, vpp, filepath.Join(filepath.Dir(vpp), "vppctl")}
	for plugin, required := range plugins {
		file := filepath.Join(dir, plugin)
		if _, err := os.Stat(file); errors.Is(err, fs.ErrNotExist) && !required {
			continue
		}
		objects = append(objects, file)
	}
	for _, object := range objects {
		if object != ip {
			files[strings.TrimPrefix(object, root)] = object
		}
		ldd := exec.CommandContext(ctx, "ldd", object)
		if root != "" {
			ldd.Env = append(os.Environ(), "LD_LIBRARY_PATH="+filepath.Dir(dir))
		}
		out, err := ldd.CombinedOutput()
		if err != nil {
			return nil, fmt.Errorf("find libraries of %s: %w: %s", object, err, out)
		}
		if strings.Contains(string(out), "not found") {
			return nil, fmt.Errorf("libraries of %s are missing: %s", object, out)
		}
		for _, line := range library.FindAllStringSubmatch(string(out), -1) {
			files[strings.TrimPrefix(line[1], root)] = line[1]
		}
	}
	return files, nil
}

// library matches the path in a line of ldd.
var library = regexp.MustCompile(`(?m)(/\S+) \(0x[0-9a-f]+\)$`)

// assemble makes the image of the files.
func assemble(files map[string]string, bin string) (oci.Image, error) {
	image := oci.Image{OS: "linux", Architecture: runtime.GOARCH, Entrypoint: []string{"/example-cni"}, User: "0:0", Env: []string{"PATH=" + bin + ":/bin"}}
	directories := map[string]bool{}
	for _, file := range append(slices.Collect(maps.Keys(files)), "/run/vpp/", "/etc/vpp/", "/tmp/", "/var/lib/cni/") {
		for dir := path.Dir(file); dir != "/"; dir = path.Dir(dir) {
			directories[dir[1:]+"/"] = true
		}
	}
	for _, dir := range slices.Sorted(maps.Keys(directories)) {
		image.Files = append(image.Files, oci.File{Path: dir, Mode: 0o755})
	}
	for _, file := range slices.Sorted(maps.Keys(files)) {
		content, err := os.ReadFile(files[file])
		if err != nil {
			return oci.Image{}, err
		}
		image.Files = append(image.Files, oci.File{Path: strings.TrimPrefix(file, "/"), Mode: 0o755, Content: content})
	}
	return image, nil
}
