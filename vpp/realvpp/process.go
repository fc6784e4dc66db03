package realvpp

import (
	"bytes"
	"cmp"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// environment of the test that leads to a real VPP.
const (
	envBinary  = "TROUPE_VPP_BIN"
	envPlugins = "TROUPE_VPP_PLUGINS"
)

// startup is the configuration of a VPP that needs no huge pages, no NIC, no pinned cores and
// nothing outside its directory. Arguments: runtime directory, name of the API segment, line of the
// plugin path, further sections, settings of the process, section of the workers, MB of heap.
const startup = `
unix { nodaemon nosyslog log %[1]s/vpp.log cli-listen %[1]s/cli.sock runtime-dir %[1]s %[5]s }
memory { main-heap-size %[7]dM main-heap-page-size default }
buffers { buffers-per-numa 2048 page-size default }
statseg { size 32M page-size default socket-name %[1]s/stats.sock }
socksvr { socket-name %[1]s/api.sock }
api-segment { prefix %[2]s }
%[6]s
plugins {
  %[3]s
  plugin default { disable }
  plugin nat_plugin.so { enable }
  plugin cnat_plugin.so { enable }
  plugin acl_plugin.so { enable }
  plugin af_packet_plugin.so { enable }
  plugin ping_plugin.so { enable }
  plugin vrrp_plugin.so { enable }
}
%[4]s
`

// Find returns the binary of a real VPP and the directory of its plugins ("" = its own), or why
// there is none.
func Find() (binary, plugins, why string) {
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

// Process is a VPP that runs for one test.
type Process struct {
	binary, plugins, dir string
	sections             string
	heap                 int // MB, 0 = 512
	workers              int
	process              *exec.Cmd
	output               bytes.Buffer
	dead                 chan struct{}
	prefixes             []string
}

// Start starts the VPP that Find has found for one test, and kills it with the test. Its directory
// has a short name of its own, because a socket path has no more than 107 bytes.
func Start(t testing.TB, binary, plugins string) *Process {
	t.Helper()
	dir, err := os.MkdirTemp("", "vpp")
	if err != nil {
		t.Fatal(err)
	}
	if plugins != "" {
		plugins = "path " + plugins
	}
	p := &Process{binary: binary, plugins: plugins, dir: dir, workers: Workers(t)}
	t.Cleanup(func() { p.cleanup(t) })
	p.Restart(t)
	return p
}

// Socket is the path of the binary API socket; it stays the same over restarts.
func (p *Process) Socket() string { return filepath.Join(p.dir, "api.sock") }

// StatsSocket is the path of the statistics socket; it stays the same over restarts.
func (p *Process) StatsSocket() string { return filepath.Join(p.dir, "stats.sock") }

// Restart starts the process again, without any state, and waits until its socket answers.
func (p *Process) Restart(t testing.TB) {
	t.Helper()
	if p.process != nil {
		p.Crash(t)
	}
	p.output.Reset()
	p.process = p.command(t, p.configure(t))
	p.process.Stdout, p.process.Stderr = &p.output, &p.output
	if err := p.process.Start(); err != nil {
		t.Fatal(err)
	}
	process, dead := p.process, make(chan struct{})
	p.dead = dead
	go func() {
		defer close(dead)
		_ = process.Wait()
	}()
	waitFor(t, "VPP to listen", func() bool {
		select {
		case <-dead:
			t.Fatalf("VPP did not start:\n%s", p.output.String())
		default:
		}
		conn, err := net.Dial("unix", p.Socket())
		if err == nil {
			_ = conn.Close()
		}
		return err == nil
	})
}

// Configure adds sections to the configuration of the next starts.
func (p *Process) Configure(sections string) { p.sections = sections }

// Heap sets the size of the main heap of the next starts, in MB.
func (p *Process) Heap(size int) { p.heap = size }

// configure writes the configuration of the next start. Every start has an API segment of its own:
// a killed VPP leaves its segment, with its locks.
func (p *Process) configure(t testing.TB) string {
	t.Helper()
	prefix := fmt.Sprintf("troupe%d-%d", os.Getpid(), instances.Add(1))
	p.prefixes = append(p.prefixes, prefix)
	path := filepath.Join(p.dir, "startup.conf")
	unix, cpu, heap := "", "", cmp.Or(p.heap, 512)
	if p.workers > 0 {
		unix = "poll-sleep-usec 50" // workers that share cores must not spin
		heap *= 2                   // every worker has a table of NAT sessions
		cpu = fmt.Sprintf("cpu { main-core 0 corelist-workers 1-%d }", p.workers)
	}
	if err := os.WriteFile(path, fmt.Appendf(nil, startup, p.dir, prefix, p.plugins, p.sections, unix, cpu, heap), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// Crash kills the process and leaves it down.
func (p *Process) Crash(t testing.TB) {
	t.Helper()
	_ = p.process.Process.Kill()
	p.WaitDead(t)
}

// WaitDead waits until the process has ended.
func (p *Process) WaitDead(t testing.TB) {
	t.Helper()
	select {
	case <-p.dead:
	case <-time.After(20 * time.Second):
		t.Fatal("VPP did not die")
	}
}

// cleanup kills the process and removes what it leaves: its directory and its segments in shared
// memory.
func (p *Process) cleanup(t testing.TB) {
	if p.process != nil && p.dead != nil {
		p.Crash(t)
		if t.Failed() {
			t.Logf("output of VPP:\n%s", strings.TrimSpace(p.output.String()))
		}
	}
	for _, prefix := range p.prefixes {
		segments, _ := filepath.Glob("/dev/shm/*" + prefix + "-*")
		for _, segment := range segments {
			_ = os.RemoveAll(segment)
		}
	}
	if err := os.RemoveAll(p.dir); err != nil {
		t.Error(err)
	}
}

// waitFor polls a condition.
func waitFor(t testing.TB, what string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !condition(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited too long for %s", what)
		}
	}
}
