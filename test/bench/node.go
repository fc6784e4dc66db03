package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/troupe-vpp/troupe/test/build"
)

// patience is how long anything may take.
const patience = 30 * time.Minute

// startup is the configuration of a VPP that needs no huge pages and nothing outside its directory.
// Arguments: directory, line of the plugin path, prefix of the API segment.
const startup = `
unix { nodaemon nosyslog log %[1]s/vpp.log cli-listen %[1]s/cli.sock runtime-dir %[1]s exec %[1]s/setup }
memory { main-heap-size 2G main-heap-page-size default }
buffers { buffers-per-numa 2048 page-size default }
statseg { size 128M page-size default socket-name %[1]s/stats.sock }
socksvr { socket-name %[1]s/api.sock }
api-segment { prefix %[3]s }
plugins {
  %[2]s
  plugin default { disable }
  plugin nat_plugin.so { enable }
  plugin cnat_plugin.so { enable }
  plugin acl_plugin.so { enable }
}
`

// setup is what a CNI would have made of VPP.
const setup = `create loopback interface
set interface state loop0 up
set interface ip address loop0 192.168.16.1/24
ip route add 0.0.0.0/0 via 192.168.16.254 loop0
`

// topology is the same for a simulated VPP.
const topology = `interfaces:
- {name: loop0, addresses: [192.168.16.1/24], gateway: 192.168.16.254}
`

// configuration is what has no flag. Nothing is limited: the sizes are the ones asked for.
// Argument: whether interfaces have both roles of NAT44.
const configuration = `apiVersion: troupe.dev/v1alpha1
kind: AgentConfiguration
services:
  clusterCIDRs: [10.0.0.0/11]
  serviceCIDRs: [10.96.0.0/12]
  limits: {frontendsPerNamespace: 0, backendsPerNamespace: 0, vppMemory: 0, agentMemory: 0}
nat44: {insideRole: %t}
`

// programs are the binaries.
type programs struct {
	dir          string
	agent        string
	vpp, plugins string // "" = there is none
	kubeProxy    string // "" = not measured
}

// prepare builds the agent as it is in the image, and looks for a VPP.
func prepare(ctx context.Context, dir string, etcd bool) (*programs, error) {
	p := &programs{dir: dir, agent: os.Getenv(agentVariable), plugins: os.Getenv("TROUPE_VPP_PLUGINS")}
	if p.vpp = os.Getenv("TROUPE_VPP_BIN"); p.vpp == "" {
		p.vpp, _ = exec.LookPath("vpp")
	}
	var err error
	switch {
	case p.agent != "":
	case p.vpp == "" || etcd: // the image's program has no simulator and no etcd
		p.agent, err = build.Agent(ctx, dir)
	default:
		p.agent, err = build.Trimmed(ctx, dir)
	}
	return p, err
}

// vppName is the version of VPP, and whether it is a real one.
func (p *programs) vppName(version string) string {
	if p.vpp == "" {
		return version + " (simulated)"
	}
	return version
}

// source is where the agent reads the services.
type source interface {
	// arguments are those of an agent that reads them.
	arguments() ([]string, error)
	close()
}

// server is a source that other programs can read as well.
type server interface {
	// credentials returns the kubeconfig of a client.
	credentials(client string) (kubeconfig string, err error)
}

// node is a VPP with an agent.
type node struct {
	*programs
	context.Context
	dir        string
	etcd       string // as the agent's flag takes it
	source     source
	cluster    *cluster // the source, if it is a real API server
	vppSocket  string   // that the agent uses
	proxy      *proxy   // before it; nil = none yet
	vpp, agent *exec.Cmd
	kubeProxy  *exec.Cmd
	client     http.Client
	launched   time.Time // the agent
}

// newNode returns a node without processes, with so many services in the source of the options.
func newNode(ctx context.Context, p *programs, o options, services int) (*node, error) {
	dir, err := os.MkdirTemp(p.dir, "n")
	if err != nil {
		return nil, fmt.Errorf("make directory: %w", err)
	}
	n := &node{programs: p, Context: ctx, dir: dir, etcd: "none"}
	if o.etcd {
		n.etcd = "embedded"
	}
	n.vppSocket = n.file("api.sock")
	n.client.Transport = &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", n.file("control"))
	}}
	plugins := ""
	if p.plugins != "" {
		plugins = "path " + p.plugins
	}
	for name, content := range map[string]string{
		"startup.conf": fmt.Sprintf(startup, dir, plugins, filepath.Base(dir)), "setup": setup, "topology.yaml": topology, "config.yaml": fmt.Sprintf(configuration, o.inside),
	} {
		if err := os.WriteFile(n.file(name), []byte(content), 0o600); err != nil {
			return nil, fmt.Errorf("write %s: %w", name, err)
		}
	}
	switch o.source {
	case sourceFiles:
		n.source = &files{n.file("objects")}
		err = writeObjects(n.file("objects"), services)
	case sourceFeed:
		n.source, err = newFeed(dir, services, o.dual)
	default:
		n.cluster, err = newCluster(ctx, services)
		n.source = n.cluster
	}
	return n, err
}

// file is the path of a file of the node.
func (n *node) file(name string) string { return filepath.Join(n.dir, name) }

// spawn starts a process, which does not outlive this one. Its output is in a file.
func (n *node) spawn(name, program string, arguments ...string) (*exec.Cmd, error) {
	out, err := os.OpenFile(n.file(name+".log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open log of %s: %w", name, err)
	}
	defer func() { _ = out.Close() }()
	cmd := exec.Command(program, arguments...)
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	return cmd, nil
}

// startVPP starts VPP and waits until it answers.
func (n *node) startVPP() (err error) {
	_ = os.Remove(n.file("api.sock"))
	if n.programs.vpp == "" {
		n.vpp, err = n.spawn("vpp", n.programs.agent, "simulator", "--api-socket", n.file("api.sock"), "--stats-socket", n.file("stats.sock"), "--topology", n.file("topology.yaml"))
	} else {
		n.vpp, err = n.spawn("vpp", n.programs.vpp, "-c", n.file("startup.conf"))
	}
	if err != nil {
		return err
	}
	return n.await("VPP", func() bool {
		conn, err := net.Dial("unix", n.file("api.sock"))
		if err == nil {
			_ = conn.Close()
		}
		return err == nil
	})
}

// startAgent starts the agent.
func (n *node) startAgent() (err error) {
	source, err := n.source.arguments()
	if err != nil {
		return err
	}
	n.launched = time.Now()
	n.agent, err = n.spawn("agent", n.programs.agent, append([]string{
		"agent", "--config", n.file("config.yaml"), "--node-name", nodeName,
		"--vpp-api-socket", n.vppSocket, "--vpp-stats-socket", n.file("stats.sock"), "--etcd", n.etcd, "--data-dir", n.file("data"),
		"--control-socket", n.file("control"), "--http-address", "", "--healthz-bind-address", "", "--log-level", "warn",
	}, source...)...)
	return err
}

// ready waits until the agent is ready.
func (n *node) ready() error { return n.readiness("agent is ready", http.StatusOK) }

// readiness waits for an answer of /readyz.
func (n *node) readiness(what string, want int) error {
	return n.await(what, func() bool {
		answer, err := n.client.Get("http://agent/readyz")
		if err != nil {
			return false
		}
		_ = answer.Body.Close()
		return answer.StatusCode == want
	})
}

// status is what the agent says of itself.
type status struct {
	Version string `json:"version"`
	VPP     string `json:"vpp"`
}

// status asks the agent.
func (n *node) status() (s status, err error) {
	body, err := n.get("/api/v1/status")
	if err == nil {
		err = json.Unmarshal(body, &s)
	}
	return s, err
}

// get returns the body of an answer of the agent.
func (n *node) get(path string) ([]byte, error) { return get(&n.client, "http://agent"+path) }

// get returns the body of an answer.
func get(client *http.Client, url string) ([]byte, error) {
	answer, err := client.Get(url)
	if err != nil {
		return nil, err
	}
	defer func() { _ = answer.Body.Close() }()
	var body bytes.Buffer
	if _, err := body.ReadFrom(answer.Body); err != nil || answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("get %s: %s: %w", url, answer.Status, cmp.Or(err, errors.New("no answer of the API")))
	}
	return body.Bytes(), nil
}

// operations counts the changes of VPP by this run of the agent.
func (n *node) operations() (sum float64, err error) {
	body, err := n.get("/metrics")
	if err != nil {
		return 0, err
	}
	return metric(body, "troupe_vpp_operations_total{")
}

// metric is the sum of the metrics whose names and labels begin so.
func metric(body []byte, prefix string) (sum float64, err error) {
	for line := range strings.Lines(string(body)) {
		if name, value, _ := strings.Cut(line, " "); strings.HasPrefix(name, prefix) {
			one, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
			if err != nil {
				return 0, err
			}
			sum += one
		}
	}
	return sum, err
}

// show returns the output of a show command of VPP.
func (n *node) show(what string) (string, error) { return n.vppctl("show " + what) }

// vppctl carries out a command of VPP's CLI and returns its output.
func (n *node) vppctl(command string) (string, error) {
	ctl := exec.CommandContext(n, filepath.Join(filepath.Dir(n.programs.vpp), "vppctl"), "-s", n.file("cli.sock"), command)
	shown, err := ctl.Output()
	if err != nil {
		return "", fmt.Errorf("command %q of VPP: %w", command, err)
	}
	return string(shown), nil
}

// command carries out a command of VPP's CLI that prints nothing, or the interface that it creates,
// unless it fails.
func (n *node) command(text string) error {
	shown, err := n.vppctl(text)
	if shown = strings.TrimSpace(shown); err == nil && !slices.Contains([]string{"", clients, network}, shown) {
		err = fmt.Errorf("command %q of VPP: %s", text, shown)
	}
	return err
}

// setUp waits until VPP has its interface: VPP carries out its setup two seconds after it listens.
func (n *node) setUp() error {
	return n.await("interface of VPP", func() bool {
		if n.programs.vpp == "" {
			return true
		}
		shown, err := n.show("interface address")
		return err == nil && strings.Contains(shown, nodeIP)
	})
}

// heap is how much of VPP's main heap is used, in bytes; 0 where VPP is simulated.
func (n *node) heap() (used float64, err error) {
	if n.programs.vpp == "" {
		return 0, nil
	}
	shown, err := n.show("memory main-heap")
	if err != nil {
		return 0, err
	}
	_, text, _ := strings.Cut(shown, "used: ")
	var unit rune
	if _, err := fmt.Sscanf(text, "%f%c", &used, &unit); err != nil {
		return 0, fmt.Errorf("no used heap in %q: %w", shown, err)
	}
	return used * map[rune]float64{'K': 1 << 10, 'M': 1 << 20, 'G': 1 << 30}[unit], nil
}

// await waits until the condition holds. No process may end meanwhile.
func (n *node) await(what string, holds func() bool) error {
	const interval = 2 * time.Millisecond
	for began := time.Now(); !holds(); time.Sleep(interval) {
		if n.Err() != nil {
			return n.Err()
		}
		if slices.ContainsFunc([]*exec.Cmd{n.vpp, n.agent, n.kubeProxy}, ended) {
			return fmt.Errorf("%s: a process has ended\n%s", what, n.logs())
		}
		if time.Since(began) > patience {
			return fmt.Errorf("%s: not within %s\n%s", what, patience, n.logs())
		}
	}
	return nil
}

// logs are the ends of the logs of VPP, the agent and kube-proxy.
func (n *node) logs() (ends string) {
	const most = 4000
	for _, name := range []string{"vpp", "agent", "kube-proxy"} {
		text, _ := os.ReadFile(n.file(name + ".log"))
		ends += string(text[max(0, len(text)-most):])
	}
	return ends
}

// ended reports whether a process has ended by itself.
func ended(cmd *exec.Cmd) bool {
	var info unix.Siginfo
	return cmd != nil && cmd.ProcessState == nil &&
		unix.Waitid(unix.P_PID, cmd.Process.Pid, &info, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil) == nil && info.Signo != 0
}

// kill ends a process.
func kill(cmd *exec.Cmd) {
	if cmd != nil && cmd.ProcessState == nil {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
}

// close ends the processes and removes their files.
func (n *node) close() {
	kill(n.agent)
	kill(n.vpp)
	kill(n.kubeProxy)
	if n.proxy != nil {
		n.proxy.close()
	}
	n.source.close()
	_ = os.RemoveAll(n.dir)
}

// cpu is the time that a process and its children that have ended have had a core.
func cpu(pid int) (time.Duration, error) {
	const ticks = 100 // a second, on every Linux
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut(string(text), ") ")
	fields := strings.Fields(rest)
	var sum time.Duration
	for _, field := range fields[11:15] { // utime, stime, cutime, cstime
		n, err := strconv.Atoi(field)
		if err != nil {
			return 0, fmt.Errorf("read CPU time of process %d: %w", pid, err)
		}
		sum += time.Duration(n) * time.Second / ticks
	}
	return sum, nil
}

// resident is a figure of the memory of a process, in MiB.
func resident(pid int, field string) (float64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	for line := range strings.Lines(string(text)) {
		if value, is := strings.CutPrefix(line, field+":"); is {
			kilobytes, err := strconv.ParseFloat(strings.Fields(value)[0], 64)
			return kilobytes / 1024, err
		}
	}
	return 0, errors.Join(err, fmt.Errorf("/proc has no %s", field))
}

// thisMachine describes the machine.
func thisMachine() machine {
	m := machine{Cores: runtime.NumCPU(), Go: runtime.Version(), CPU: "unknown CPU"}
	text, _ := os.ReadFile("/proc/cpuinfo")
	for line := range strings.Lines(string(text)) {
		if name, value, _ := strings.Cut(line, ":"); strings.TrimSpace(name) == "model name" {
			m.CPU = strings.TrimSpace(value)
		}
	}
	var uts unix.Utsname
	if unix.Uname(&uts) == nil {
		m.Kernel = unix.ByteSliceToString(uts.Release[:])
	}
	return m
}
