package contract

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// environment of the test that leads to a real VPP.
const (
	envBinary  = "TROUPE_VPP_BIN"
	envPlugins = "TROUPE_VPP_PLUGINS"
)

// startup is the configuration of a VPP that needs no huge pages, no NIC, no pinned cores and nothing outside its directory. Arguments:
// runtime directory, name of the API segment, line of the plugin path.
const startup = `
unix { nodaemon nosyslog log %[1]s/vpp.log cli-listen %[1]s/cli.sock runtime-dir %[1]s }
memory { main-heap-size 512M main-heap-page-size default }
buffers { buffers-per-numa 2048 page-size default }
statseg { size 32M page-size default socket-name %[1]s/stats.sock }
socksvr { socket-name %[1]s/api.sock }
api-segment { prefix %[2]s }
plugins {
  %[3]s
  plugin default { disable }
  plugin nat_plugin.so { enable }
  plugin cnat_plugin.so { enable }
  plugin acl_plugin.so { enable }
  plugin af_packet_plugin.so { enable }
  plugin ping_plugin.so { enable }
}
`

// findVPP returns the binary of a real VPP and the directory of its plugins ("" = its own), or why there is none.
func findVPP() (binary, plugins, why string) {
	plugins = os.Getenv(envPlugins)
	if binary = os.Getenv(envBinary); binary == "" {
		found, err := exec.LookPath("vpp")
		if err != nil {
			return "", "", "no real VPP: " + envBinary + " is not set and vpp is not on PATH"
		}
		binary = found
	}
	if _, err := os.Stat(binary); err != nil {
		return "", "", fmt.Sprintf("no real VPP: %v", err)
	}
	return binary, plugins, ""
}

// instances numbers the VPPs of this process, because their API segments live in one directory.
var instances atomic.Int32

// real is a process of VPP as a target.
type real struct {
	binary, plugins, dir string
	process              *exec.Cmd
	output               bytes.Buffer
	dead                 chan struct{}
	prefixes             []string
}

// startReal starts a real VPP for one test and kills it with the test. Its directory has a short name of its own, because a socket path
// has no more than 107 bytes.
func startReal(t testing.TB, binary, plugins string) Target {
	t.Helper()
	dir, err := os.MkdirTemp("", "vpp")
	if err != nil {
		t.Fatal(err)
	}
	if plugins != "" {
		plugins = "path " + plugins
	}
	r := &real{binary: binary, plugins: plugins, dir: dir}
	t.Cleanup(func() { r.cleanup(t) })
	r.Restart(t)
	return r
}

func (r *real) Socket() string { return filepath.Join(r.dir, "api.sock") }

func (r *real) StatsSocket() string { return filepath.Join(r.dir, "stats.sock") }

// Restart starts the process and waits until its socket answers.
func (r *real) Restart(t testing.TB) {
	t.Helper()
	if r.process != nil {
		r.Crash(t)
	}
	r.output.Reset()
	r.process = exec.Command(r.binary, "-c", r.configure(t))
	r.process.Stdout, r.process.Stderr = &r.output, &r.output
	r.process.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := r.process.Start(); err != nil {
		t.Fatal(err)
	}
	process, dead := r.process, make(chan struct{})
	r.dead = dead
	go func() {
		defer close(dead)
		_ = process.Wait()
	}()
	waitFor(t, "VPP to listen", func() bool {
		select {
		case <-dead:
			t.Fatalf("VPP did not start:\n%s", r.output.String())
		default:
		}
		conn, err := net.Dial("unix", r.Socket())
		if err == nil {
			_ = conn.Close()
		}
		return err == nil
	})
}

// configure writes the configuration of the next start. Every start has an API segment of its own: a killed VPP leaves its segment, with
// its locks.
func (r *real) configure(t testing.TB) string {
	t.Helper()
	prefix := fmt.Sprintf("troupe%d-%d", os.Getpid(), instances.Add(1))
	r.prefixes = append(r.prefixes, prefix)
	path := filepath.Join(r.dir, "startup.conf")
	if err := os.WriteFile(path, fmt.Appendf(nil, startup, r.dir, prefix, r.plugins), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func (r *real) Crash(t testing.TB) {
	t.Helper()
	_ = r.process.Process.Kill()
	r.WaitDead(t)
}

func (r *real) WaitDead(t testing.TB) {
	t.Helper()
	select {
	case <-r.dead:
	case <-time.After(20 * time.Second):
		t.Fatal("VPP did not die")
	}
}

// cleanup kills the process and removes what it leaves: its directory and its segments in shared memory.
func (r *real) cleanup(t testing.TB) {
	if r.process != nil && r.dead != nil {
		r.Crash(t)
		if t.Failed() {
			t.Logf("output of VPP:\n%s", strings.TrimSpace(r.output.String()))
		}
	}
	for _, prefix := range r.prefixes {
		segments, _ := filepath.Glob("/dev/shm/*" + prefix + "-*")
		for _, segment := range segments {
			_ = os.RemoveAll(segment)
		}
	}
	if err := os.RemoveAll(r.dir); err != nil {
		t.Error(err)
	}
}
