package process

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/troupe-vpp/troupe/bootstrap/api"
	"github.com/troupe-vpp/troupe/vpp/realvpp"
	"github.com/troupe-vpp/troupe/vpp/rule"
)

// longPatience is how long the benchmark waits for anything.
const longPatience = 2 * time.Minute

// BenchmarkGreedyTenant reports the longest time that the other tenant's change takes from the file
// until a packet gets to the new endpoint, the share of /livez that was not 200, and the most
// memory that the agent has taken.
func BenchmarkGreedyTenant(b *testing.B) {
	binary, plugins, why := realvpp.Find()
	if why != "" {
		b.Skip(why)
	}
	const off = "{frontendsPerService: 0, frontendsPerNamespace: 0, backendsPerService: 0, backendsPerNamespace: 0}"
	for _, tt := range []struct {
		name, limits               string
		services, ports, addresses int
	}{
		{"one service of 250000 rows, limited", "{}", 1, 500, 499},
		{"a namespace at its limits", "{}", 16, 64, 63},
		{"one service of 250000 rows, limits off", off, 1, 500, 499},
	} {
		b.Run(tt.name, func(b *testing.B) {
			for b.Loop() {
				n := start(b, realvpp.Start(b, binary, plugins), tt.limits)
				n.write("greedy.yaml", greedy(tt.services, tt.ports, tt.addresses))
				n.watch(b)
				n.stop(b)
			}
		})
	}
}

// node is a VPP with an agent.
type node struct {
	testing.TB
	dir     string
	socket  string // of VPP's API
	plane   *realvpp.Generator
	pod     uint32
	packets uint64
	agent   *exec.Cmd
	out     bytes.Buffer
	client  http.Client
}

// start runs an agent that serves the other tenant.
func start(b testing.TB, vpp *realvpp.Process, limits string) *node {
	n := &node{TB: b, dir: b.TempDir(), socket: vpp.Socket(), plane: realvpp.NewGenerator(b, vpp)}
	n.plane.Port(b, false) // pg0, the uplink
	n.pod = n.plane.Port(b, false)
	for _, command := range []string{
		"set interface state pg0 up", "set interface ip address pg0 192.168.16.1/24", "ip route add 0.0.0.0/0 via 192.168.16.254 pg0",
		"set interface state pg1 up", "set interface unnumbered pg1 use pg0", "ip route add 10.1.1.2/32 via 10.1.1.2 pg1",
	} {
		n.plane.Command(b, command)
	}
	if err := os.Mkdir(filepath.Join(n.dir, "objects"), 0o755); err != nil {
		b.Fatal(err)
	}
	n.write("node.yaml", nodeObject)
	n.change("10.1.1.100")
	config := filepath.Join(n.dir, "config.yaml")
	if err := os.WriteFile(config, fmt.Appendf(nil, configuration, limits), 0o600); err != nil {
		b.Fatal(err)
	}
	control := filepath.Join(n.dir, "control")
	n.client = http.Client{Timeout: longPatience, Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", control)
	}}}
	n.agent = exec.Command(os.Args[0], "agent", "--config", config, "--node-name", "n1", "--kube-source", "files:"+filepath.Join(n.dir, "objects"),
		"--vpp-api-socket", vpp.Socket(), "--vpp-stats-socket", vpp.StatsSocket(), "--etcd", "none", "--data-dir", filepath.Join(n.dir, "data"),
		"--control-socket", control, "--http-address", "", "--healthz-bind-address", "", "--log-format", "text", "--log-level", "warn")
	// as in a container of 512 MiB
	n.agent.Env = append(os.Environ(), asAgent+"=1", "GOMEMLIMIT=460MiB")
	n.agent.Stdout, n.agent.Stderr = &n.out, &n.out
	n.agent.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := n.agent.Start(); err != nil {
		b.Fatal(err)
	}
	n.await("ready", func() bool { return n.ask("/readyz") == http.StatusOK })
	return n
}

// stop ends the agent, and reports its memory.
func (n *node) stop(b *testing.B) {
	_ = n.agent.Process.Signal(syscall.SIGTERM)
	if err := n.agent.Wait(); err != nil {
		n.Errorf("the agent ended: %v\n%s", err, n.out.String())
	}
	b.ReportMetric(float64(n.agent.ProcessState.SysUsage().(*syscall.Rusage).Maxrss)/1024, "MB")
}

// watch changes the other tenant's endpoint again and again until VPP has all that it should have.
func (n *node) watch(b *testing.B) {
	began := time.Now()
	var longest time.Duration
	asked, bad, settled, rows := 0, 0, 0, 0
	for turn := 0; settled < 3; turn++ {
		endpoint := fmt.Sprint("10.1.1.", 101+turn%100)
		n.change(endpoint)
		changed := time.Now()
		n.await("change of the other tenant", func() bool {
			asked++
			if n.ask("/livez") != http.StatusOK {
				bad++
			}
			return n.leadsTo(endpoint)
		})
		longest = max(longest, time.Since(changed))
		settled++
		if rows = n.rows(); rows == 0 {
			settled = 0
		}
		if time.Since(began) > longPatience {
			n.Fatalf("not settled within %s\n%s", longPatience, n.out.String())
		}
	}
	b.ReportMetric(float64(rows), "rows")
	b.ReportMetric(longest.Seconds(), "s/change")
	b.ReportMetric(time.Since(began).Seconds(), "s/all")
	b.ReportMetric(100*float64(bad)/float64(asked), "%unlive")
	if bad > 0 {
		n.Errorf("%d of %d times /livez was not 200", bad, asked)
	}
}

// leadsTo reports whether a new connection of the pod to the other tenant's service gets to an
// endpoint.
func (n *node) leadsTo(endpoint string) bool { return n.reaches("10.96.0.10:80", endpoint) }

// reaches reports whether a new connection of the pod to a service gets to an endpoint.
func (n *node) reaches(service, endpoint string) bool {
	p := n.attempt(netip.MustParseAddrPort(service))
	return n.plane.Exchange(n.TB, []realvpp.Packet{p})[p.ID].Dst.Addr() == netip.MustParseAddr(endpoint)
}

// attempt is the first packet of a connection of the pod, from a port of its own.
func (n *node) attempt(service netip.AddrPort) realvpp.Packet {
	n.packets++
	from := netip.AddrPortFrom(netip.MustParseAddr("10.1.1.2"), uint16(20_000+n.packets%40_000))
	return realvpp.Packet{Port: n.pod, ID: n.packets, Src: from, Dst: service, Proto: rule.TCP, Flags: 2}
}

func (n *node) ask(path string) int {
	answer, err := n.client.Get("http://agent" + path)
	if err != nil {
		return 0
	}
	_ = answer.Body.Close()
	return answer.StatusCode
}

// list returns the services of the agent; nil = it does not say.
func (n *node) list() []api.Service {
	var page struct {
		Items []api.Service `json:"items"`
	}
	answer, err := n.client.Get("http://agent/api/v1/services?limit=1000")
	if err != nil {
		return nil
	}
	defer answer.Body.Close()
	if err := json.NewDecoder(answer.Body).Decode(&page); err != nil {
		n.Fatal(err)
	}
	return page.Items
}

// rows returns how many rows VPP has for all services; 0 = something is not as it should be yet.
func (n *node) rows() (rows int) {
	greedy := false
	for _, s := range n.list() {
		greedy = greedy || strings.HasPrefix(s.Key, "evil/")
		rows += s.Rows
		if s.State == api.ServicePending {
			return 0
		}
	}
	if !greedy || n.ask("/readyz") != http.StatusOK {
		return 0
	}
	return rows
}

func (n *node) await(what string, holds func() bool) {
	n.Helper()
	for deadline := time.Now().Add(longPatience); !holds(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			_ = n.agent.Process.Kill()
			_ = n.agent.Wait()
			n.Fatalf("%s: not within %s\n%s", what, longPatience, n.out.String())
		}
	}
}

// write puts a manifest into the agent's directory.
func (n *node) write(name, text string) {
	path := filepath.Join(n.dir, name)
	err := os.WriteFile(path, []byte(text), 0o600)
	if err == nil {
		err = os.Rename(path, filepath.Join(n.dir, "objects", name))
	}
	if err != nil {
		n.Fatal(err)
	}
}

// change gives the other tenant's service an endpoint.
func (n *node) change(endpoint string) { n.write("web.yaml", fmt.Sprintf(web, endpoint)) }

// greedy are services with so many frontends each, ports times external addresses.
func greedy(services, ports, addresses int) string {
	var text strings.Builder
	first := netip.MustParseAddr("203.0.0.1")
	for i := range services {
		var numbers, named []string
		for p := range ports {
			numbers = append(numbers, fmt.Sprintf("{name: p%d, port: %d, protocol: TCP}", p, 1+p))
			named = append(named, fmt.Sprintf("{name: p%d, port: 8080, protocol: TCP}", p))
		}
		var externals []string
		for range addresses {
			externals, first = append(externals, first.String()), first.Next()
		}
		fmt.Fprintf(&text, greed, i, strings.Join(externals, ", "), strings.Join(numbers, ", "), strings.Join(named, ", "))
	}
	return text.String()
}
