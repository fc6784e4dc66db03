package namespaces

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/troupe-vpp/troupe/test/controlplane"
)

// names of the namespaces: two pods and a client outside.
var names = []string{"tr-pod3", "tr-pod4", "tr-out"}

// stage is a node: VPP, an agent, namespaces.
type stage struct {
	*testing.T
	dir, vppBinary, plugins, troupe string
	plugin                          string // one that VPP loads beside those of all stages
	workers                         int    // of VPP
	netns                           string // where VPP runs; "" = where the test runs
	config                          string // of VPP, further sections
	vpp, agent                      *controlplane.Process
	servers                         map[string]*exec.Cmd
}

// newStage makes the namespaces, and starts VPP and the servers.
func newStage(t *testing.T) *stage {
	t.Helper()
	s := bareStage(t)
	for _, n := range names {
		s.namespace(n)
	}
	for i, n := range names[:2] {
		s.run("ip", "-n", n, "addr", "add", fmt.Sprintf("fd00:2:%d::2/64", i), "dev", "e0", "nodad")
		s.run("ip", "-n", n, "addr", "add", pod(i)+"/128", "dev", "e0", "nodad")
		s.run("ip", "-n", n, "-6", "route", "add", "default", "via", fmt.Sprintf("fd00:2:%d::1", i), "src", pod(i))
	}
	s.run("ip", "-n", "tr-out", "addr", "add", "2001:db8::fe/64", "dev", "e0", "nodad")
	s.run("ip", "-n", "tr-out", "-6", "route", "add", "default", "via", "2001:db8::1")
	s.startVPP()
	for _, n := range names[:2] {
		s.serve(n, n)
	}
	return s
}

// directories makes those of a node.
func (s *stage) directories() {
	s.Helper()
	var err error
	if s.dir, err = os.MkdirTemp("", "troupe"); err != nil { // short: paths of sockets are limited
		s.Fatal(err)
	}
	s.Cleanup(func() { _ = os.RemoveAll(s.dir) })
	for _, sub := range []string{"objects", "vpp"} {
		if err := os.Mkdir(filepath.Join(s.dir, sub), 0o700); err != nil {
			s.Fatal(err)
		}
	}
}

// needs skips the test where something is missing.
func (s *stage) needs() {
	s.Helper()
	_, missing := exec.LookPath("ip")
	_, noPlugin := os.Stat(filepath.Join(s.plugins, "af_packet_plugin.so"))
	switch {
	case os.Getuid() != 0:
		s.Skip("needs root, for network namespaces")
	case missing != nil:
		s.Skip("needs the program ip")
	case s.vppBinary == "" || noPlugin != nil:
		s.Skip("needs a real VPP with the plugin af_packet: set TROUPE_VPP_BIN and TROUPE_VPP_PLUGINS")
	}
}

// namespace makes one, with a link to VPP.
func (s *stage) namespace(n string) {
	s.Helper()
	_ = exec.Command("ip", "netns", "del", n).Run() // of an earlier run that was killed
	_ = exec.Command("ip", "link", "del", n).Run()  // which goes some time after its namespace
	s.run("ip", "netns", "add", n)
	s.Cleanup(func() { _ = exec.Command("ip", "netns", "del", n).Run() }) // takes its link with it
	s.run("ip", "link", "add", n, "type", "veth", "peer", "name", "e0", "netns", n)
	s.run("ip", "link", "set", n, "up")
	s.run("ip", "-n", n, "link", "set", "lo", "up")
	s.run("ip", "-n", n, "link", "set", "e0", "up")
}

// pod is the address of a pod.
func pod(i int) string { return fmt.Sprintf("fd00:1::%d", 3+i) }

// run runs a program, which must succeed.
func (s *stage) run(name string, arguments ...string) {
	s.Helper()
	if out, err := exec.Command(name, arguments...).CombinedOutput(); err != nil {
		s.Fatalf("%s %s: %v\n%s", name, strings.Join(arguments, " "), err, out)
	}
}

// in is the program of the tests in a namespace.
func (s *stage) in(namespace, part, argument string) *exec.Cmd {
	s.Helper()
	self, err := os.Executable()
	if err != nil {
		s.Fatal(err)
	}
	cmd := exec.Command("ip", "netns", "exec", namespace, self, argument)
	cmd.Env = append(os.Environ(), role+"="+part)
	return cmd
}

// startVPP starts VPP with its interfaces and routes.
func (s *stage) startVPP() {
	s.Helper()
	commands := []string{}
	for _, n := range names {
		commands = append(commands, "create host-interface name "+n, "set interface state host-"+n+" up")
	}
	for i, n := range names[:2] {
		commands = append(commands, fmt.Sprintf("set interface ip address host-%s fd00:2:%d::1/64", n, i), fmt.Sprintf("ip route add %s/128 via fd00:2:%d::2 host-%s", pod(i), i, n))
	}
	s.bareVPP(append(commands, "set interface ip address host-tr-out 2001:db8::1/64", "ip route add ::/0 via 2001:db8::fe host-tr-out"))
}

// bareVPP starts VPP and has it carry out commands.
func (s *stage) bareVPP(commands []string) {
	s.Helper()
	conf := filepath.Join(s.dir, "startup.conf")
	cpu := ""
	if s.workers > 0 { // which share cores, so they must not spin
		cpu = fmt.Sprintf("unix { poll-sleep-usec 50 }\ncpu { main-core 0 corelist-workers 1-%d }", s.workers)
	}
	text := fmt.Sprintf(`unix { nodaemon cli-listen %[1]s/cli.sock runtime-dir %[1]s/vpp }
socksvr { socket-name %[1]s/api.sock }
statseg { socket-name %[1]s/stats.sock }
api-segment { prefix %[3]s }
buffers { buffers-per-numa 4096 page-size default }
%[5]s
plugins { path %[2]s plugin default { disable } plugin nat_plugin.so { enable } plugin acl_plugin.so { enable } plugin cnat_plugin.so { enable } plugin af_packet_plugin.so { enable } plugin vxlan_plugin.so { enable } plugin %[4]s { enable } }
%[6]s
`, s.dir, s.plugins, filepath.Base(s.dir), cmp.Or(s.plugin, "gre_plugin.so"), cpu, s.config)
	if err := os.WriteFile(conf, []byte(text), 0o600); err != nil {
		s.Fatal(err)
	}
	_ = os.Remove(filepath.Join(s.dir, "cli.sock"))
	program := []string{s.vppBinary, "-c", conf}
	if s.workers >= runtime.NumCPU() { // VPP wants a core for each; vpp/realvpp says how it starts without
		become, list := filepath.Join(s.dir, "become"), filepath.Join(s.dir, "cpus")
		s.run("go", "-C", filepath.Join("..", ".."), "test", "-c", "-o", become, "./vpp/realvpp")
		if err := os.WriteFile(list, []byte("0-15\n"), 0o600); err != nil {
			s.Fatal(err)
		}
		program = append([]string{"env", "TROUPE_TEST_BECOME_VPP=" + list, become}, program...)
	}
	if s.netns != "" {
		program = append([]string{"ip", "netns", "exec", s.netns}, program...)
	}
	s.vpp = controlplane.SpawnAs(s, filepath.Join(s.dir, "vpp", "vpp.log"), exec.Command(program[0], program[1:]...))
	s.Cleanup(func() { // a killed VPP leaves its memory
		segments, _ := filepath.Glob("/dev/shm/*" + filepath.Base(s.dir) + "*") // fails for no pattern of ours
		for _, segment := range segments {
			_ = os.RemoveAll(segment)
		}
	})
	controlplane.Eventually(s, "VPP answers", func() string {
		if _, err := s.ctl("show version"); err != nil {
			return err.Error()
		}
		return ""
	})
	for _, command := range commands {
		if _, err := s.ctl(command); err != nil {
			s.Fatal(err)
		}
	}
}

// ctl is a command of VPP.
func (s *stage) ctl(command string) (string, error) {
	out, err := exec.Command(filepath.Join(filepath.Dir(s.vppBinary), "vppctl"), append([]string{"-s", filepath.Join(s.dir, "cli.sock")}, strings.Fields(command)...)...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%s: %w: %s", command, err, out)
	}
	return strings.TrimSpace(string(out)), nil
}

// startAgent starts the agent, and waits until it is ready.
func (s *stage) startAgent() {
	s.Helper()
	s.spawnAgent()
	s.ready(true)
}

// spawnAgent starts the agent with flags of its own.
func (s *stage) spawnAgent(flags ...string) {
	s.Helper()
	s.agent = controlplane.Spawn(s, s.dir, s.troupe, append([]string{
		"agent", "--node-name", "n1", "--kube-source", "files:" + filepath.Join(s.dir, "objects"),
		"--vpp-api-socket", filepath.Join(s.dir, "api.sock"), "--vpp-stats-socket", filepath.Join(s.dir, "stats.sock"), "--etcd", "none", "--http-address", "",
		"--healthz-bind-address", "", "--enable-chaos", "--control-socket", filepath.Join(s.dir, "control.sock"), "--service-cidr", "10.96.0.0/12,fd00:96::/112", "--data-dir", filepath.Join(s.dir, "data"),
	}, flags...)...)
}

// ready waits until the agent is ready, or is not.
func (s *stage) ready(want bool) {
	s.Helper()
	controlplane.Eventually(s, fmt.Sprint("ready: ", want), func() string {
		if text, status := s.ask("/readyz?verbose"); (status == http.StatusOK) != want {
			return text
		}
		return ""
	})
}

// ask asks the agent.
func (s *stage) ask(path string) (text string, status int) {
	s.Helper()
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", filepath.Join(s.dir, "control.sock"))
	}}}
	answer, err := client.Get("http://agent" + path)
	if err != nil {
		return err.Error(), 0
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		return err.Error(), 0
	}
	return string(body), answer.StatusCode
}

// apply writes objects.
func (s *stage) apply(objects string) {
	s.Helper()
	file := filepath.Join(s.dir, "all.yaml")
	if err := os.WriteFile(file, []byte(objects), 0o600); err != nil {
		s.Fatal(err)
	}
	if err := os.Rename(file, filepath.Join(s.dir, "objects", "all.yaml")); err != nil {
		s.Fatal(err)
	}
}

// reaches checks what a client gets, as soon as neighbours are known and servers are up.
func (s *stage) reaches(from, how, to, want string) {
	s.Helper()
	controlplane.Eventually(s, fmt.Sprintf("%s %s %s => %s", from, how, to, want), func() string {
		out, err := s.in(from, how, to).CombinedOutput()
		if got := string(out); err != nil || got != want {
			return fmt.Sprintf("%s, %v", got, err)
		}
		return ""
	})
}

// held is a connection that stays open.
type held struct {
	*stage
	in  io.Writer
	out *bufio.Reader
}

// hold opens one.
func (s *stage) hold(from, to string) *held {
	s.Helper()
	in, out := s.converse(s.in(from, "hold", to))
	return &held{s, in, out}
}

// converse starts a process that answers lines with lines. It ends with the test.
func (s *stage) converse(cmd *exec.Cmd) (io.Writer, *bufio.Reader) {
	s.Helper()
	in, err := cmd.StdinPipe()
	if err != nil {
		s.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		s.Fatal(err)
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	return in, bufio.NewReader(out)
}

// answers checks the answer to a request on the connection.
func (h *held) answers(want string) {
	h.Helper()
	if _, err := fmt.Fprintln(h.in, "again"); err != nil {
		h.Fatal(err)
	}
	if got, err := h.out.ReadString('\n'); err != nil || strings.TrimSpace(got) != want {
		h.Errorf("on an open connection %q, %v, want %q", got, err, want)
	}
}
