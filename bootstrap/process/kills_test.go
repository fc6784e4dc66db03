package process

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/troupe-vpp/troupe/vpp/simulator"
)

const uplink = "uplink0"

// world is VPP with everything around it.
type world struct {
	*machine
	vpp      *simulator.VPP
	witness  *witness
	traffic  *traffic
	manifest *directory
	random   *rand.Rand
	port     uint16
	foreign  string // a row that the agent has not made

	present wanted
	touched map[string]bool // rows that changed since VPP was verified last
	// drained are the rows and addresses with endpoints that drained when VPP was last compared.
	drained  map[string]bool
	through  map[string]string // keys of rows, by the client of a probe as the endpoint sees it
	lists    bool              // and whether access lists had to
	sources  map[string]bool   // FIB sources that were made
	before   map[string]int    // routes that were there before the first agent
	verified int
	deaths   map[string]int
}

// TestKills: whenever an agent dies, the next one repairs everything that it left behind, and
// touches nothing else.
func TestKills(t *testing.T) {
	for _, etcd := range []string{"none", "embedded"} {
		// an etcd inside dies with the agent, and has a disk of its own
		t.Run("etcd "+etcd, func(t *testing.T) { killAgain(t, etcd) })
	}
}

// killAgain is the life of one node.
func killAgain(t *testing.T, etcd string) {
	w := newWorld(t, cmp.Or(*seed, rand.Uint64()), etcd)
	still := w.traffic.flow()
	defer still()
	for killed := 0; ; {
		p := w.start()
		p.live()
		w.verify()
		if w.verified == 1 {
			w.hold()
		}
		if killed >= *kills || t.Failed() {
			p.stop()
			break
		}
		killed += w.dieAtWork(p)
		for killed < *kills && w.random.IntN(2) == 0 {
			killed += w.dieStarting()
		}
	}
	still()
	if *kills <= fewKills {
		t.Logf("only %d kills, to be done soon; -kills 200 is what CI does", *kills)
	}
	t.Logf("%d times started and verified; died: %v; %d changes of VPP, %d connections held over %d packets each way", w.verified, w.deaths, w.witness.total(),
		len(w.traffic.held), w.traffic.rounds)
}

func newWorld(t *testing.T, seed uint64, etcd string) *world {
	t.Helper()
	t.Logf("seed %d: repeat with -seed %d -kills %d", seed, seed, *kills)
	random := rand.New(rand.NewPCG(seed, 1))
	w := &world{witness: &witness{}, random: random, touched: map[string]bool{}, sources: map[string]bool{}, through: map[string]string{}, deaths: map[string]int{}, port: 1024}
	w.vpp = simulator.New(simulator.Options{Observe: w.witness.observe, OnBoot: topology(t)})
	t.Cleanup(func() { _ = w.vpp.Close() })
	dir, err := os.MkdirTemp("", "kill") // a short name: it holds sockets
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	w.machine = newMachine(t, filepath.Join(dir, "vpp"), etcd)
	if err := w.vpp.Listen(w.machine.vpp); err != nil {
		t.Fatal(err)
	}
	w.before = w.routes()
	w.traffic = &traffic{vpp: w.vpp, port: 50000} // above those of the probes
	w.manifest = &directory{t, w.manifests, random}
	w.manifest.fill()
	w.changed()
	return w
}

// topology is the configuration of VPP by a CNI.
func topology(t *testing.T) func(v *simulator.VPP) {
	return func(v *simulator.VPP) {
		_, err := v.AddInterface(uplink, []netip.Prefix{netip.MustParsePrefix(nodeIP + "/24")}, true)
		err = errors.Join(err, v.DefaultRoute(uplink, netip.MustParseAddr("192.168.16.254")))
		for i := range pods {
			_, e := v.AddPod(fmt.Sprint("pod", i), netip.MustParseAddr(pod(1, i)))
			err = errors.Join(err, e)
		}
		if err != nil {
			t.Error(err)
		}
	}
}

// hold opens connections through the rows that stay, and adds a foreign row to VPP.
func (w *world) hold() {
	w.Helper()
	for _, s := range calmServices() {
		proto := simulator.ProtoTCP
		if s.protocol == "UDP" {
			proto = simulator.ProtoUDP
		}
		for range 3 {
			w.traffic.open(w.T, s.name, "pod2", pod(1, 2), s.clusterIP()+":80", proto, "")
			w.traffic.open(w.T, s.name, "pod3", pod(1, 3), s.clusterIP()+":80", proto, "")
		}
		for _, address := range []string{s.balancer, s.external} {
			if address != "" {
				w.traffic.open(w.T, s.name, uplink, client, address+":80", proto, "")
			}
		}
		if s.kind == "NodePort" {
			w.traffic.open(w.T, s.name, uplink, client, fmt.Sprint(nodeIP, ":", 30000+s.number), proto, "")
		}
	}
	for n := range busy {
		s := busyService(n, rand.New(rand.NewPCG(0, 0)))
		for i := range 3 {
			w.traffic.open(w.T, s.name, fmt.Sprint("pod", i), pod(1, i), s.clusterIP()+":80", simulator.ProtoTCP, pinned(n))
		}
		if s.balancer != "" {
			w.traffic.open(w.T, s.name, uplink, client, s.balancer+":80", simulator.ProtoTCP, pinned(n))
		}
	}
	theirs := netip.MustParseAddrPort("198.51.100.99:80")
	backends := []simulator.Backend{{Addr: netip.MustParseAddrPort("10.9.9.1:80"), Weight: 1}, {Addr: netip.MustParseAddrPort("10.9.9.2:80"), Weight: 1}}
	if retval, err := w.vpp.ForeignAdd(simulator.ForeignRow{VIP: theirs, Proto: simulator.ProtoTCP, Tag: "theirs", Backends: backends}); err != nil || retval != 0 {
		w.Fatal(retval, err)
	}
	for _, row := range w.vpp.Rows() {
		if keyOfRow(row) == theirs.String()+"/6" {
			w.foreign = row
		}
	}
}

// change changes the manifests.
func (w *world) change() {
	w.Helper()
	for range 1 + w.random.IntN(3) {
		w.manifest.mutate()
		w.changed()
	}
}

// dieAtWork kills an agent that is up, at rest or while it brings changes into VPP.
func (w *world) dieAtWork(p *process) int {
	w.Helper()
	switch w.random.IntN(5) {
	case 0:
		p.kill()
		w.change()
		return w.died("at rest")
	case 1:
		w.change()
		time.Sleep(time.Duration(w.random.IntN(150)) * time.Millisecond)
		p.kill()
		return w.died("some time after a change")
	default:
		nth := 1 + w.random.IntN([]int{3, 12, 60}[w.random.IntN(3)])
		w.witness.light(p.strike, func(_, writes int) bool { return writes >= nth })
		w.change()
		return w.burn(p, "at a write", 300*time.Millisecond)
	}
}

// dieStarting starts an agent and kills it before it is up.
func (w *world) dieStarting() int {
	w.Helper()
	if w.random.IntN(2) == 0 {
		w.change()
	}
	p := w.start()
	switch w.random.IntN(3) {
	case 0:
		time.Sleep(time.Duration(w.random.IntN(400)) * time.Millisecond)
		p.kill()
		return w.died("some time after the start")
	case 1:
		nth := 1 + w.random.IntN(60)
		w.witness.light(p.strike, func(requests, _ int) bool { return requests >= nth })
		return w.burn(p, "at a request of the start", time.Second)
	default:
		nth := 1 + w.random.IntN([]int{3, 20}[w.random.IntN(2)])
		w.witness.light(p.strike, func(_, writes int) bool { return writes >= nth })
		return w.burn(p, "at a write of the start", time.Second)
	}
}

// burn waits until the fuse has killed the agent, or does it by hand when VPP is not asked for so
// much.
func (w *world) burn(p *process, how string, most time.Duration) int {
	w.Helper()
	select {
	case <-p.done:
	case <-time.After(most):
	}
	if !w.witness.quench() {
		how += " that did not come"
	}
	p.kill()
	return w.died(how)
}

// died counts a death.
func (w *world) died(how string) int {
	w.deaths[how]++
	if w.equal() != "" {
		w.deaths["... and left VPP behind the cluster"]++
	}
	return 1
}
