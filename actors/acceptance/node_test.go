package acceptance_test

import (
	"net/netip"
	"sync/atomic"
	"testing"
	"time"

	"go.fd.io/govpp/binapi/nat44_ed"
	"go.fd.io/govpp/binapi/nat_types"

	"github.com/troupe-vpp/troupe/actors"
	"github.com/troupe-vpp/troupe/actors/actorstest"
	"github.com/troupe-vpp/troupe/kube"
	"github.com/troupe-vpp/troupe/kube/service"
	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/cnat"
	"github.com/troupe-vpp/troupe/vpp/simulator"
)

// timing lets a test see soon what takes a node half a minute.
var timing = actors.Timing{
	Retry: 200 * time.Millisecond, Rediscover: time.Second, RediscoverSoon: 100 * time.Millisecond, DriftCheck: time.Second,
	DriftCheckLeast: time.Second, Backoff: 20 * time.Millisecond,
}

// node is a node whose addresses, pods and clients a test knows, with all that its troupe writes to
// VPP.
type node struct {
	*actorstest.World
	T      *testing.T
	places *places
	// checkups are its health-check node ports.
	checkups *checkups
	// ahead is how far VPP's clock is before the real one.
	ahead atomic.Int64
	// link is the connection of the running troupe.
	link *overheard
	// context is what the node is, as the services should see it.
	context *messages.NodeContext
	// port is the last client port that was used.
	port uint16
	// dialled are the endpoints that dialTo has connected to.
	dialled map[string]bool
	// cnat: CNAT serves instead of NAT44.
	cnat bool
}

// newNode builds a node of the cluster, with a VPP that lacks the named plugins. No actor runs
// before Start.
func newNode(t *testing.T, name string, serving service.Config, without ...string) *node {
	t.Helper()
	n := &node{T: t, checkups: newCheckups(t), port: 1023, dialled: map[string]bool{}}
	n.World = actorstest.New(t, actorstest.Config{
		Node: name, Empty: true, Serving: serving, Deps: n.configure, VPP: simulator.Options{
			Clock: func() time.Time { return time.Now().Add(time.Duration(n.ahead.Load())) }, WithoutPlugins: without,
		},
	})
	return n
}

// configure configures a troupe as the agent does.
func (n *node) configure(d *actors.Deps) {
	n.link = &overheard{Runner: d.Link}
	d.Link, d.HealthChecks, d.Timing = n.link, n.checkups.servers, timing
	d.NAT44.Unreachable = true
	if n.cnat {
		d.CNAT = &cnat.Config{Node: n.Node, IPv4: true, Unreachable: true}
	}
}

// settled waits until all changes have arrived: every actor on the way has seen them, nothing is
// wrong and VPP's interfaces have their roles.
func (n *node) settled() {
	n.Helper()
	for range 2 {
		n.Barrier()
		n.Until("in sync", func() string {
			if wrong := n.Wrong(); wrong != "" {
				return wrong
			}
			return n.rolesMissing(n.Statuses())
		})
	}
}

// rolesMissing names an interface on the way of packets without both NAT roles: the uplink, the
// host, pods in Kubernetes and pods that back a service.
func (n *node) rolesMissing(statuses map[string]*messages.ServiceStatus) string {
	details, err := n.VPP.Exec(&nat44_ed.Nat44InterfaceDump{})
	if err != nil {
		return err.Error()
	}
	both := map[uint32]bool{}
	if n.cnat {
		return "" // Differs asks for them
	}
	for _, detail := range details {
		if d, ok := detail.(*nat44_ed.Nat44InterfaceDetails); ok {
			const roles = nat_types.NAT_IS_INSIDE | nat_types.NAT_IS_OUTSIDE
			both[uint32(d.SwIfIndex)] = d.Flags&roles == roles
		}
	}
	interfaces := n.VPP.Interfaces()
	for name := range n.places.needed(statuses) {
		if !both[interfaces[name]] {
			return "no roles on " + name
		}
	}
	return ""
}

// setNode tells the cluster what this node is.
func (n *node) setNode(self *messages.Node) {
	n.Source.Change(func(s *kube.Store) { s.Set(self, nil) })
	n.context = &messages.NodeContext{Node: self, Addresses: self.GetAddresses()}
}

// clientPort gives a port that no connection of this node has used for a long time.
func (n *node) clientPort() uint16 {
	if n.port++; n.port < 1024 {
		n.port = 1024
	}
	return n.port
}

// prefixes parses networks.
func prefixes(t *testing.T, texts []string) []netip.Prefix {
	t.Helper()
	var all []netip.Prefix
	for _, text := range texts {
		p, err := netip.ParsePrefix(text)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, p.Masked())
	}
	return all
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
