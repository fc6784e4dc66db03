package namespaces

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/troupe-vpp/troupe/test/controlplane"
)

// world is two nodes, each with a VPP, in a layout. The stage is node n1, which is under test; node
// n2 has a VPP and no agent. Everything is in network namespaces of its own.
type world struct {
	*stage
	layout
	second *stage
	prefix string            // of the namespaces
	socket map[string]string // of each peer
}

// pods are the pods of each node.
var pods = map[string][]string{"1": {"c1", "b1", "b2"}, "2": {"r1"}}

// newWorld makes the namespaces, the VPPs, and what the layout asks for.
func newWorld(base *stage, t *testing.T, l layout) *world {
	t.Helper()
	one := *base
	one.T, one.workers = t, min(l.workers, runtime.NumCPU()-1)
	if n, err := strconv.Atoi(os.Getenv("TROUPE_VPP_WORKERS")); err == nil && l.workers > 0 {
		one.workers = n
	}
	if l.workers > 0 {
		t.Logf("%d workers, %d cores", one.workers, runtime.NumCPU())
	}
	if one.plugin = l.plugin; one.plugin != "" {
		if _, err := os.Stat(filepath.Join(one.plugins, one.plugin)); err != nil {
			t.Skip("not played: this VPP has no " + one.plugin)
		}
	}
	two := one
	two.workers = 0
	for _, s := range []*stage{&one, &two} {
		s.directories()
	}
	w := &world{stage: &one, layout: l, second: &two, prefix: fmt.Sprintf("tl-%d-", os.Getpid()), socket: map[string]string{}}
	w.sweep()
	for _, n := range append(slices.Clone(l.places()), "n1", "n2", "fab") {
		w.place(n)
	}
	w.script("", "fab ip link add name fabric type bridge\nfab ip link set fabric up")
	// VPP gives the members of a bond one hardware address, and Linux would say at each member that
	// the address is there.
	w.script("", "n1 set net.ipv6.conf.default.disable_ipv6=1\nn2 set net.ipv6.conf.default.disable_ipv6=1")
	one.netns, two.netns = w.prefix+"n1", w.prefix+"n2"
	one.config = "session { enable }"
	one.bareVPP(nil)
	two.bareVPP(nil)
	version, err := w.ctl("show version")
	if err != nil {
		t.Fatal(err)
	}
	if strings.HasPrefix(version, "vpp v26.06") && l.not2606 != "" {
		t.Skip("not played with VPP 26.06: " + l.not2606)
	}
	w.script("", l.fabric)
	for _, n := range []string{"1", "2"} {
		w.script(n, l.node)
		for k, pod := range pods[n] {
			w.script(n, expand(l.pod, podVariables(n, pod, k)...))
		}
		w.script(n, l.routes)
	}
	w.script("", l.host)
	w.script("", l.last)
	for _, n := range l.peers() {
		w.peer(n)
	}
	return w
}

// sweep deletes the namespaces of runs that were killed.
func (w *world) sweep() {
	w.Helper()
	left, _ := filepath.Glob("/run/netns/tl-*") // fails for no pattern of ours
	for _, path := range left {
		var pid int
		if _, err := fmt.Sscanf(filepath.Base(path), "tl-%d-", &pid); err != nil {
			continue
		}
		if _, err := os.Stat(fmt.Sprintf("/proc/%d", pid)); err != nil {
			w.run("ip", "netns", "del", filepath.Base(path))
		}
	}
}

// place makes a namespace.
func (w *world) place(n string) {
	w.Helper()
	w.run("ip", "netns", "add", w.prefix+n)
	w.Cleanup(func() { _ = exec.Command("ip", "netns", "del", w.prefix+n).Run() }) // takes its links with it
	w.run("ip", "-n", w.prefix+n, "link", "set", "lo", "up")
}

// peer starts the process of a host, and waits until it answers.
func (w *world) peer(n string) {
	w.Helper()
	w.socket[n] = filepath.Join(w.dir, n+".sock")
	controlplane.SpawnAs(w, filepath.Join(w.dir, n+".log"), w.in(w.prefix+n, "peer", n+" "+w.socket[n]))
	controlplane.Eventually(w, n+" runs", func() string {
		if _, err := w.to(n, "heard", "", 0); err != nil {
			return err.Error()
		}
		return ""
	})
}

// to asks a peer.
func (w *world) to(n, what, to string, number int) (string, error) {
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", w.socket[n])
	}}}
	answer, err := client.Get(fmt.Sprintf("http://peer/%s?n=%d&to=%s", what, number, url.QueryEscape(to)))
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s", strings.TrimSpace(string(body)))
	}
	return string(body), err
}

// expand replaces variables: pairs of a name, without its $, and a value. Longer names come first.
func expand(text string, pairs ...string) string {
	type pair struct{ name, value string }
	var all []pair
	for i := 0; i < len(pairs); i += 2 {
		all = append(all, pair{"$" + pairs[i], pairs[i+1]})
	}
	slices.SortStableFunc(all, func(a, b pair) int { return len(b.name) - len(a.name) })
	var list []string
	for _, p := range all {
		list = append(list, p.name, p.value)
	}
	return strings.NewReplacer(list...).Replace(text)
}

// podVariables are those of a pod: its name, addresses, gateways, and the hardware address of its
// interface.
func podVariables(node, pod string, k int) []string {
	four := strings.TrimSuffix(podAddress[pod], "2") + "1"
	six := strings.TrimSuffix(podAddress6[pod], "2") + "1"
	return []string{"pod", pod, "a", podAddress[pod], "gw", four, "a6", podAddress6[pod], "gw6", six, "mac", fmt.Sprintf("02:00:00:00:0%s:0%d", node, k), "k", fmt.Sprint(k), "table", fmt.Sprint(11 + k)}
}

// script carries out commands for a node ("" = for none), one a line:
//
//	link NS:IF NS:IF   makes a pair of interfaces, which are up, in two namespaces
//	port NS:IF         makes an interface that is linked to the bridge in the namespace fab
//	NS ip ...          a command of ip in a namespace
//	NS ethtool ...     a command of ethtool there
//	NS set KEY=VALUE   a setting of the kernel there
//	vpp ...            a command of the node's VPP; n1 vpp and n2 vpp name the node
//	stop agent         kills the agent
//	troupe ...         a command of the agent's program
//
// $n is the number of the node, $o that of the other one, and $dir the directory of the sockets;
// see variables for the others.
func (w *world) script(node, text string) {
	w.Helper()
	other := map[string]string{"1": "2", "2": "1"}[node]
	text = expand(text, append(w.variables(node, other), "n", node, "o", other, "dir", w.dir)...)
	for _, line := range strings.Split(text, "\n") {
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		if words[0] == "vpp" {
			words = append([]string{"n" + node}, words...)
		}
		switch {
		case words[0] == "port":
			end := strings.ReplaceAll(words[1], ":", "-")
			w.join(words[1], "fab:"+end)
			w.run("ip", "-n", w.prefix+"fab", "link", "set", end, "master", "fabric")
		case words[0] == "link":
			w.join(words[1], words[2])
		case words[0] == "stop":
			w.agent.Kill()
		case words[0] == "troupe":
			w.run(w.troupe, words[1:]...)
		case words[1] == "ip":
			w.run("ip", append([]string{"-n", w.prefix + words[0]}, words[2:]...)...)
		case words[1] == "ethtool":
			w.run("ip", append([]string{"netns", "exec", w.prefix + words[0]}, words[1:]...)...)
		case words[1] == "set":
			key, value, _ := strings.Cut(words[2], "=")
			w.run("ip", "netns", "exec", w.prefix+words[0], "sh", "-c", "echo "+value+" > /proc/sys/"+strings.ReplaceAll(key, ".", "/"))
		case words[1] == "vpp":
			w.configure(map[string]*stage{"n1": w.stage, "n2": w.second}[words[0]], strings.Join(words[2:], " "))
		default:
			w.Fatalf("layout %s: unknown command %q", w.name, line)
		}
	}
}

// configure is a command of a VPP that changes something: VPP answers with the name of what it has
// made, or with an error.
func (w *world) configure(s *stage, command string) {
	w.Helper()
	said, err := s.ctl(command)
	if err != nil {
		w.Fatal(err)
	}
	if strings.ContainsAny(said, " \n") && !strings.HasPrefix(said, "bridge-domain ") && !strings.HasPrefix(said, "ACL index") {
		w.Fatalf("VPP answers %q with %q", command, said)
	}
}

// join makes a pair of interfaces.
func (w *world) join(a, b string) {
	w.Helper()
	nsA, nameA, _ := strings.Cut(a, ":")
	nsB, nameB, _ := strings.Cut(b, ":")
	w.run("ip", "link", "add", "name", nameA, "netns", w.prefix+nsA, "type", "veth", "peer", "name", nameB, "netns", w.prefix+nsB)
	w.run("ip", "-n", w.prefix+nsA, "link", "set", "dev", nameA, "up")
	w.run("ip", "-n", w.prefix+nsB, "link", "set", "dev", nameB, "up")
}
