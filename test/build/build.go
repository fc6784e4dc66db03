package build

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"
)

// module is a Go module below test whose programs are built into the cache.
type module struct {
	dir     string // below test
	modfile string // in it, instead of go.mod; "" = go.mod
	tags    string // of the build, separated by commas
	flags   string // of the linker
}

// Without DWARF the build takes 15 % less time and 20 % less memory.
const common = "-trimpath -buildvcs=false -gcflags=all=-dwarf=false"

// KubernetesVariable is the environment variable with the version of Kubernetes that tests run
// with, as in "v1.37.2": the module test/kubernetes has a file of that name with the ending .mod.
// Unset = that of its go.mod.
const KubernetesVariable = "TROUPE_TEST_KUBERNETES"

// defaultKubernetes is that of k8s.io/kubernetes in go.mod.
const defaultKubernetes = "v1.36.3"

var (
	containerd = module{
		dir: "containerd", tags: "no_btrfs,no_zfs,no_devmapper,no_tracing,urfave_cli_no_docs",
		// that of go.mod
		flags: "-s -w -X github.com/containerd/containerd/v2/version.Version=v2.4.2",
	}
	consul = module{dir: "consul", flags: "-s -w"}
)

// program is a binary and the package of which it is built.
type program struct{ binary, path string }

var (
	controlPlane = []program{
		{"etcd", "go.etcd.io/etcd/server/v3"},
		{"controllers", "./controllers"},
		{"kube-apiserver", "k8s.io/kubernetes/cmd/kube-apiserver"},
	}
	kubelet   = []program{{"kubelet", "k8s.io/kubernetes/cmd/kubelet"}}
	kubeProxy = []program{{"kube-proxy", "k8s.io/kubernetes/cmd/kube-proxy"}}
	suite     = []program{
		{"agnhost", "k8s.io/kubernetes/test/images/agnhost"},
		{"kube-controller-manager", "k8s.io/kubernetes/cmd/kube-controller-manager"},
		{"kube-scheduler", "k8s.io/kubernetes/cmd/kube-scheduler"},
		{"kubectl", "k8s.io/kubernetes/cmd/kubectl"},
		{"regression-issue-74839", "k8s.io/kubernetes/test/images/regression-issue-74839"},
		{"suite", "."},
	}
	runtimes = []program{
		{"containerd", "github.com/containerd/containerd/v2/cmd/containerd"},
		{"containerd-shim-runc-v2", "github.com/containerd/containerd/v2/cmd/containerd-shim-runc-v2"},
		{"ctr", "github.com/containerd/containerd/v2/cmd/ctr"},
		{"bridge", "github.com/containernetworking/plugins/plugins/main/bridge"},
		{"host-local", "github.com/containernetworking/plugins/plugins/ipam/host-local"},
		{"loopback", "github.com/containernetworking/plugins/plugins/main/loopback"},
	}
)

// Kubernetes returns the version of Kubernetes that tests run with.
func Kubernetes() string { return cmp.Or(os.Getenv(KubernetesVariable), defaultKubernetes) }

// HasServiceCIDRs reports whether that version has ServiceCIDR objects, which came with 1.33.
func HasServiceCIDRs() bool { return Kubernetes() >= "v1.33" }

// kubernetes is the module of that version; its binaries report it.
func kubernetes() module {
	const variable = " -X k8s.io/component-base/version."
	version := Kubernetes()
	major, minor, _ := strings.Cut(strings.TrimPrefix(version, "v"), ".")
	minor, _, _ = strings.Cut(minor, ".")
	m := module{dir: "kubernetes", flags: "-s -w" + variable + "gitVersion=" + version + variable + "gitMajor=" + major +
		variable + "gitMinor=" + minor + variable + "gitTreeState=clean" + variable + "buildDate=1970-01-01T00:00:00Z"}
	if version != defaultKubernetes {
		m.modfile = version + ".mod"
	}
	return m
}

// ControlPlane returns the directory with etcd, kube-apiserver and controllers, and builds them if
// they are not in the cache. say is told what takes time. The directory belongs to the cache: it
// must not be modified.
func ControlPlane(ctx context.Context, say func(format string, args ...any)) (string, error) {
	return kubernetes().build(ctx, say, controlPlane)
}

// Node returns the directory of kubelet, and the directory of containerd with its shim, ctr and the
// CNI plugins; as ControlPlane.
func Node(ctx context.Context, say func(format string, args ...any)) (kubeletDir, containerdDir string, err error) {
	if kubeletDir, err = kubernetes().build(ctx, say, kubelet); err != nil {
		return "", "", err
	}
	containerdDir, err = containerd.build(ctx, say, runtimes)
	return kubeletDir, containerdDir, err
}

// KubeProxy returns the directory of kube-proxy; as ControlPlane.
func KubeProxy(ctx context.Context, say func(format string, args ...any)) (string, error) {
	return kubernetes().build(ctx, say, kubeProxy)
}

// Consul returns the directory of consul; as ControlPlane.
func Consul(ctx context.Context, say func(format string, args ...any)) (string, error) {
	return consul.build(ctx, say, []program{{"consul", "github.com/hashicorp/consul"}})
}

// Suite returns the directory of Kubernetes' own end-to-end tests, which are those of
// defaultKubernetes whatever version runs, of the programs that they need on nodes and beside
// them, and the directory of CoreDNS; as ControlPlane.
func Suite(ctx context.Context, say func(format string, args ...any)) (suiteDir, dnsDir string, err error) {
	m := kubernetes()
	m.dir, m.modfile = "e2e/suite", ""
	if suiteDir, err = m.build(ctx, say, suite); err != nil {
		return "", "", err
	}
	dnsDir, err = module{dir: "e2e/dns", flags: "-s -w"}.build(ctx, say, []program{{"coredns", "."}})
	return suiteDir, dnsDir, err
}

// build returns the directory of the module in the cache, and builds the programs that are not in
// it.
func (m module) build(ctx context.Context, say func(format string, args ...any), programs []program) (string, error) {
	key, err := m.key()
	if err != nil {
		return "", fmt.Errorf("hash module %s: %w", m.dir, err)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find cache directory: %w", err)
	}
	cache = filepath.Join(cache, "troupe-test")
	dir := filepath.Join(cache, key)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("make cache directory: %w", err)
	}
	missing := func(p program) bool {
		_, err := os.Stat(filepath.Join(dir, p.binary))
		return err != nil
	}
	if !slices.ContainsFunc(programs, missing) {
		return dir, nil
	}
	unlock, err := lock(filepath.Join(cache, "lock"))
	if err != nil {
		return "", err
	}
	defer unlock()
	for _, p := range programs {
		if !missing(p) {
			continue
		}
		file := filepath.Join(dir, p.binary)
		begun := time.Now()
		say("building %s into %s", p.path, dir)
		arguments := append(strings.Fields(common), "-modfile", m.modfile, "-tags", m.tags, "-ldflags", m.flags, "-o", file+".unfinished", p.path)
		if err := run(ctx, m.path(), arguments...); err != nil {
			return "", err
		}
		if err := os.Rename(file+".unfinished", file); err != nil {
			return "", fmt.Errorf("name finished build: %w", err)
		}
		say("built %s in %s", p.binary, time.Since(begun).Round(time.Second))
	}
	return dir, nil
}

// path is the directory of the module.
func (m module) path() string { return filepath.Join(root(), "test", m.dir) }

// Agent builds the agent of this working tree into dir and returns its path. Go's own cache makes
// that quick where nothing has changed.
func Agent(ctx context.Context, dir string) (string, error) {
	file := filepath.Join(dir, "troupe")
	// the flags of every other build of the agent, so that its packages are in Go's cache
	return file, run(ctx, root(), "-o", file, ".")
}

// Trimmed builds the agent as it is in the image: the agent and nothing else, with the same flags.
func Trimmed(ctx context.Context, dir string) (string, error) {
	file := filepath.Join(dir, "troupe-image")
	return file, run(ctx, root(), "-trimpath", "-tags", "agent,grpcnotrace", "-ldflags", "-s -w", "-o", file, ".")
}

// Image builds the image of the agent under a name, for this platform, into an OCI archive, as the
// README does.
func Image(ctx context.Context, archive, name string) error {
	return ImageOf(ctx, root(), archive, name)
}

// ImageOf is Image of other sources.
func ImageOf(ctx context.Context, source, archive, name string) error {
	cmd := exec.CommandContext(ctx, "go", "run", "./image", "-source", source, "-o", archive, "-platforms", "linux/"+runtime.GOARCH, "-name", name)
	cmd.Dir = filepath.Join(root(), "tools")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build image %s: %w\n%s", name, err, out)
	}
	return nil
}

// ExampleVPP builds the image of the example CNI with a VPP and the plugins in a directory, under
// the name of the manifests, into an OCI archive, as its README does.
func ExampleVPP(ctx context.Context, archive, vpp, plugins string) error {
	cmd := exec.CommandContext(ctx, "go", "run", "./example-cni/image", "-o", archive, "-vpp", vpp, "-plugins", plugins)
	cmd.Dir = filepath.Join(root(), "tools")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build image of VPP: %w\n%s", err, out)
	}
	return nil
}

// Static builds a package of the module test, as a program that needs no library, into the file.
func Static(ctx context.Context, file, path string) error {
	return run(ctx, filepath.Join(root(), "test"), "-trimpath", "-ldflags", "-s -w", "-o", file, path)
}

// Root returns the directory of the root module.
func Root() string { return root() }

// root is two directories above this file.
func root() string {
	_, file, _, _ := runtime.Caller(0)
	return filepath.Dir(filepath.Dir(filepath.Dir(file)))
}

// run runs go build in a module; the last argument is the package. With -trimpath the program needs
// no C library.
func run(ctx context.Context, module string, arguments ...string) error {
	cmd := exec.CommandContext(ctx, "go", append([]string{"build", "-mod=readonly"}, arguments...)...)
	cmd.Dir = module
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=")
	if slices.Contains(arguments, "-trimpath") {
		cmd.Env = append(cmd.Env, "CGO_ENABLED=0")
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build %s: %w\n%s", arguments[len(arguments)-1], err, out)
	}
	return nil
}

// key hashes what decides the content of the binaries.
func (m module) key() (string, error) {
	hash := sha256.New()
	fmt.Fprintln(hash, runtime.Version(), runtime.GOOS, runtime.GOARCH, common, m.tags, m.flags)
	err := filepath.WalkDir(m.path(), func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := os.ReadFile(name)
		fmt.Fprintf(hash, "%s %d\n%s", strings.TrimPrefix(name, m.path()), len(content), content)
		return err
	})
	return hex.EncodeToString(hash.Sum(nil)[:8]), err
}

// lock waits for the exclusive lock of the file, which ends with the process at the latest.
func lock(name string) (unlock func(), err error) {
	file, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("open lock: %w", err)
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX); err != nil {
		_ = file.Close()
		return nil, fmt.Errorf("lock %s: %w", name, err)
	}
	return func() { _ = file.Close() }, nil
}

// WithAgent builds the program of the agent at a path that it sets, calls run and removes the
// program. It returns the exit code of a TestMain.
func WithAgent(path *string, run func() int) (code int) {
	dir, err := os.MkdirTemp("", "troupe")
	if err == nil {
		defer func() { _ = os.RemoveAll(dir) }()
		*path, err = Agent(context.Background(), dir)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return run()
}
