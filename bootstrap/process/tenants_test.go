package process

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/troupe-vpp/troupe/bootstrap/api"
	"github.com/troupe-vpp/troupe/vpp/realvpp"
)

var campaign = flag.Duration("for", 20*time.Second, "how long TestTenants lets the tenants work")

// TestTenants: three tenants at once ask for random sets of services within the limits and change
// them all the time, IPv4 and IPv6, with a VPP of 1 GiB and an agent of 512 MiB. Neither ends, an
// unchanged service loses no connection attempt of 100 a second, and changes of another tenant get
// into VPP. It also reports how long VPP's main thread was held. A campaign: -for 30m.
func TestTenants(t *testing.T) {
	n := startLarge(t)
	n.write("still.yaml", strings.NewReplacer("web", "still", "10.96.0.10", "10.96.0.11").Replace(fmt.Sprintf(web, "10.1.1.3")))
	n.await("the service that nobody changes", func() bool { return n.reaches("10.96.0.11:80", "10.1.1.3") })
	limitMemory(t, n.agent.Process.Pid, 512<<20)

	ctx, cancel := context.WithTimeout(t.Context(), *campaign)
	defer cancel()
	var tenants sync.WaitGroup
	for i := range 3 {
		tenants.Go(func() { tenant(ctx, n, i) })
	}
	var main *thread
	tenants.Go(func() { main = watchThread(ctx, t, n.socket) })
	times, lost, sent := n.probe(ctx)
	tenants.Wait()
	if n.agent.ProcessState != nil || n.agent.Process.Signal(syscall.Signal(0)) != nil {
		t.Fatalf("the agent has ended\n%s", n.out.String())
	}
	slices.Sort(times)
	used, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", n.agent.Process.Pid))
	memory := ""
	for line := range strings.Lines(string(used)) {
		if strings.HasPrefix(line, "VmHWM") {
			memory = strings.Join(strings.Fields(line)[1:], " ")
		}
	}
	t.Logf("%d changes of another tenant: p50 %s, p90 %s, at most %s; %d of %d probes lost; the agent took %s", len(times),
		times[len(times)/2].Round(time.Millisecond), times[len(times)*9/10].Round(time.Millisecond), times[len(times)-1].Round(time.Millisecond),
		lost, sent, memory)
	t.Log(main)
	if lost > 0 {
		t.Errorf("%d of %d connection attempts to a service that nobody changes were lost", lost, sent)
	}
	if n.ask("/livez") != http.StatusOK {
		t.Error("/livez is not 200")
	}
	_ = n.agent.Process.Signal(syscall.SIGTERM)
	if err := n.agent.Wait(); err != nil {
		t.Errorf("the agent ended: %v\n%s", err, n.out.String())
	}
}

// TestHungryTenants: two namespaces ask for rows of 1 GB in VPP, which ended a VPP of 1 GiB again
// and again. It lives, each has its share, and another tenant's changes get into VPP.
func TestHungryTenants(t *testing.T) {
	n := startLarge(t)
	n.change("10.1.1.100")
	for number := range 2 {
		n.write(fmt.Sprintf("tenant-%d.yaml", number), shape(number, 16, 4090, 16, 0, true, true))
	}
	n.await("half of the services of each", func() bool {
		served, refused := n.services()
		return served["tenant-0"] > 2 && served["tenant-0"] == served["tenant-1"] && refused["tenant-0"] == 16-served["tenant-0"]
	})
	n.change("10.1.1.101")
	n.await("change of another tenant", func() bool { return n.leadsTo("10.1.1.101") })
	n.await("readiness", func() bool { return n.ask("/readyz") == http.StatusOK })
	served, _ := n.services()
	t.Logf("served %v", served)
	_ = n.agent.Process.Signal(syscall.SIGTERM)
	if err := n.agent.Wait(); err != nil {
		t.Errorf("the agent ended: %v\n%s", err, n.out.String())
	}
}

// services counts, by namespace, the services that are in VPP and those that are refused.
func (n *node) services() (served, refused map[string]int) {
	served, refused = map[string]int{}, map[string]int{}
	for _, s := range n.list() {
		namespace, _, _ := strings.Cut(s.Key, "/")
		switch {
		case strings.Contains(s.Error, "the node has no room for it"):
			refused[namespace]++
		case s.State == api.ServiceInSync:
			served[namespace]++
		}
	}
	return served, refused
}

// startLarge runs an agent beside a VPP with a main heap of 1 GiB.
func startLarge(t *testing.T) *node {
	binary, plugins, why := realvpp.Find()
	if why != "" {
		t.Skip(why)
	}
	vpp := realvpp.Start(t, binary, plugins)
	vpp.Heap(1024)
	vpp.Restart(t)
	return start(t, vpp, "{}")
}

// probeRate is the number of connection attempts a second to the unchanged service.
const probeRate = 100

// probe sends connection attempts to the unchanged service, and changes the other
// tenant's endpoint every two seconds, until the context ends and the last change is in VPP. It
// returns how long VPP took to follow each change. Each turn sends all attempts that are due, so
// none is left out while VPP does not answer. An attempt counts as lost when VPP has worked on it
// and it has not left for its endpoint.
func (n *node) probe(ctx context.Context) (times []time.Duration, lost, sent int) {
	still, web := netip.MustParseAddrPort("10.96.0.11:80"), netip.MustParseAddrPort("10.96.0.10:80")
	began := time.Now()
	var changed, next time.Time
	endpoint := ""
	tick := time.NewTicker(time.Second / probeRate)
	defer tick.Stop()
	for ; ctx.Err() == nil || !changed.IsZero(); <-tick.C {
		due := int(time.Since(began)*probeRate/time.Second) - sent
		var packets []realvpp.Packet
		for range due {
			packets = append(packets, n.attempt(still))
		}
		if !changed.IsZero() {
			packets = append(packets, n.attempt(web))
		}
		out := n.plane.Exchange(n.TB, packets)
		for _, p := range packets[:due] {
			if sent++; out[p.ID].Dst.Addr() != netip.MustParseAddr("10.1.1.3") {
				lost++
			}
		}
		switch {
		case changed.IsZero() && time.Now().After(next):
			endpoint = fmt.Sprint("10.1.1.", 101+len(times)%100)
			n.change(endpoint)
			changed = time.Now()
		case changed.IsZero():
		case len(packets) > due && out[packets[due].ID].Dst.Addr() == netip.MustParseAddr(endpoint):
			times = append(times, time.Since(changed))
			changed, next = time.Time{}, time.Now().Add(2*time.Second)
		case time.Since(changed) > patience:
			n.Fatalf("the change of another tenant has not reached VPP within %s\n%s", patience, n.out.String())
		}
	}
	return times, lost, sent
}

// tenant asks for one random set of services after the other, and changes all of their endpoints a
// few times.
func tenant(ctx context.Context, n *node, number int) {
	r := rand.New(rand.NewPCG(cmp.Or(*seed, 1), uint64(number)))
	for ctx.Err() == nil {
		ports := []int{1, 16, 256, 1036, 4090}[r.IntN(5)]
		endpoints := min([]int{1, 16, 64, 253}[r.IntN(4)], 262_144/ports)
		services := min(1+r.IntN(16), 65_536/ports, 1_048_576/(ports*endpoints))
		affinity, ip6 := r.IntN(2) == 0, r.IntN(2) == 0
		for turn := range 1 + r.IntN(5) {
			n.write(fmt.Sprintf("tenant-%d.yaml", number), shape(number, services, ports, endpoints, turn, affinity, ip6))
			select {
			case <-ctx.Done():
				return
			case <-time.After(time.Duration(1+r.IntN(3)) * time.Second):
			}
		}
	}
}

// shape is a set of services of one tenant.
func shape(number, services, ports, endpoints, turn int, affinity, ip6 bool) string {
	var text strings.Builder
	family, cluster, pod := "IPv4", "10.9%d.0.%d", "10.%d.%d.%d"
	if ip6 {
		family, cluster, pod = "IPv6", "fd00:9%d::%d", "fd00:%d:%d::%d"
	}
	session := "None"
	if affinity {
		session = "ClientIP"
	}
	for s := range services {
		var numbers, named, addresses []string
		for p := range ports {
			numbers = append(numbers, fmt.Sprintf(`{"name": "p%d", "port": %d, "protocol": "TCP"}`, p, 1+p))
			named = append(named, fmt.Sprintf(`{"name": "p%d", "port": %d, "protocol": "TCP"}`, p, 8000+p))
		}
		for e := range endpoints {
			addresses = append(addresses, fmt.Sprintf(`{"addresses": ["`+pod+`"], "conditions": {"ready": true}, "nodeName": "n2"}`, 40+10*number+turn%2, s, 1+e))
		}
		fmt.Fprintf(&text, tenantObjects, number, s, fmt.Sprintf(cluster, number+7, 1+s), family, session, strings.Join(numbers, ", "), strings.Join(named, ", "),
			strings.Join(addresses, ", "))
	}
	return text.String()
}

// limitMemory puts a process into a memory cgroup of its own. Where there can be none the
// collector's limit alone holds.
func limitMemory(t *testing.T, pid int, bytes int) {
	own, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		t.Log("no cgroup of its own for the agent: ", err)
		return
	}
	root, file := "/sys/fs/cgroup", "memory.max"
	path := ""
	for line := range strings.Lines(string(own)) {
		switch fields := strings.SplitN(strings.TrimSpace(line), ":", 3); {
		case slices.Contains(strings.Split(fields[1], ","), "memory"):
			root, file, path = "/sys/fs/cgroup/memory", "memory.limit_in_bytes", fields[2]
		case fields[1] == "" && path == "":
			path = fields[2]
		}
	}
	dir := filepath.Join(root, path, fmt.Sprintf("troupe-test-%d", pid))
	if err = os.Mkdir(dir, 0o755); err == nil {
		t.Cleanup(func() { _ = os.Remove(dir) })
		if err = os.WriteFile(filepath.Join(dir, file), fmt.Append(nil, bytes), 0o600); err == nil {
			err = os.WriteFile(filepath.Join(dir, "cgroup.procs"), fmt.Append(nil, pid), 0o600)
		}
	}
	if err != nil {
		t.Logf("no cgroup of its own for the agent: %v", err)
	}
}
