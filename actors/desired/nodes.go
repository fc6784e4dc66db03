package desired

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/troupe-vpp/troupe/actors/address"
	"github.com/troupe-vpp/troupe/actors/report"
	"github.com/troupe-vpp/troupe/actors/runtime"
	"github.com/troupe-vpp/troupe/cluster"
	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/rule"
)

// nodes keeps this node known in the cluster and knows its peers. It runs node sync, passes the
// nodes of Kubernetes and the addresses of VPP to it, and reports what the cluster agreed on.
// Without node sync it has nothing to do.
type nodes struct {
	report.Health
	config    *Config
	input     *messages.NodeInput // passed to node sync
	published []string
	state     *messages.ClusterState
}

// nodesEnded is posted when node sync gave up.
type nodesEnded struct{ err error }

// NewNodes returns the actor.
func NewNodes(config *Config) runtime.Behaviour {
	return &nodes{Health: report.Health{Part: "nodes"}, config: config}
}

func (n *nodes) Start(c *runtime.Context) {
	if sync := n.config.NodeSync; sync != nil {
		post, runs := c.Post(), n.config.NodeSyncRuns
		c.Go("nodesync", func(ctx context.Context) {
			out := func(s *messages.ClusterState) { post(s) }
			if ran, err := runs.Run(ctx, func() error { return sync.Run(ctx, out) }); ran && ctx.Err() == nil {
				post(&nodesEnded{err})
			}
		})
		n.Report(c, false, "no node ID yet", 0)
		c.Send(c.PID(address.Interfaces), &messages.Resync{Sibling: "nodes", Incarnation: c.Incarnation()})
	}
	n.Health.Start(c)
	c.Ready()
}

func (*nodes) Stop(*runtime.Context) {}

func (n *nodes) Receive(c *runtime.Context, msg any) {
	switch m := msg.(type) {
	case *messages.NodeChanged:
		if n.config.NodeSync != nil && m.GetInput() != n.input { // the watch repeats the same value
			n.input = m.GetInput()
			n.config.NodeSync.SetNodes(n.input)
		}
	case *messages.InterfaceSet:
		if m.GetComplete() { // before, the addresses may be those of another interface
			n.publish(m.GetNodeAddresses())
		}
	case *messages.ClusterState:
		n.changed(c, m)
	case *nodesEnded:
		if m.err == nil {
			m.err = errors.New("it ended without an error")
		}
		// the supervisor restarts the actor, with back-off
		c.Fail(fmt.Errorf("node sync failed: %w", m.err))
	case *messages.Resync:
		n.tell(c)
	case *report.Ask:
		n.Repeat(c)
	case *report.Beat:
		n.Beat(c)
	}
}

// publish passes the addresses of VPP's uplink to node sync. An uplink that is gone for a moment
// withdraws nothing.
func (n *nodes) publish(addresses []string) {
	if n.config.NodeSync == nil || len(addresses) == 0 || slices.Equal(addresses, n.published) {
		return
	}
	n.published = addresses
	n.config.NodeSync.Publish(addresses)
}

func (n *nodes) changed(c *runtime.Context, m *messages.ClusterState) {
	if m.GetClaim() != n.state.GetClaim() || m.GetId() != n.state.GetId() {
		report.Event(c, &messages.Event{
			Kind: "node", Object: n.config.NodeName, Text: fmt.Sprintf("node ID %d %s", m.GetId(), m.GetClaim()), Error: m.GetReason(),
		})
		c.Logger().Info("node ID claim changed", "node", n.config.NodeName, "id", m.GetId(), "claim", m.GetClaim().String(), "reason", m.GetReason())
	}
	n.recordPeers(c, n.state, m)
	n.state = m
	held := m.GetClaim() == messages.ClaimState_CLAIM_HELD
	n.Report(c, held, m.GetReason(), 0)
	n.tell(c)
}

// tell sends the state of the claim and of the peers.
func (n *nodes) tell(c *runtime.Context) {
	if n.state != nil {
		c.Send(c.PID(address.Introspect), n.state)
		c.Send(c.PID(address.Registry), n.state)
	}
}

// mostPeersRecorded is how many changes of single nodes one state of the cluster adds to the
// journal; more changes are counted.
const mostPeersRecorded = 8

// recordPeers records which nodes joined, changed and left. The first state of an incarnation is
// not recorded.
func (n *nodes) recordPeers(c *runtime.Context, before, now *messages.ClusterState) {
	if before == nil {
		return
	}
	updates := cluster.Updates(before, now)
	if len(updates) > mostPeersRecorded {
		report.Event(c, &messages.Event{Kind: "node", Object: n.config.NodeName, Text: peersChanged(updates)})
		return
	}
	for _, u := range updates { // few enough for a line each
		report.Event(c, &messages.Event{Kind: "node", Object: u.GetName(), Text: peerChanged(u)})
	}
}

// peerChanged describes the change of one node.
func peerChanged(u *messages.NodeUpdate) string {
	was, is := u.GetPrevious(), u.GetCurrent()
	switch {
	case was == nil:
		return fmt.Sprintf("joined with node ID %d, VPP at %s", is.GetId(), addressList(is.GetVppAddresses()))
	case is == nil:
		return fmt.Sprintf("left; it had node ID %d", was.GetId())
	}
	var news []string
	if was.GetId() != is.GetId() {
		news = append(news, fmt.Sprintf("node ID %d", is.GetId()))
	}
	for _, list := range []struct {
		name    string
		was, is []string
	}{
		{"VPP at", was.GetVppAddresses(), is.GetVppAddresses()},
		{"management address", was.GetManagementAddresses(), is.GetManagementAddresses()},
		{"pods in", was.GetPodCidrs(), is.GetPodCidrs()},
	} {
		if !slices.Equal(list.was, list.is) {
			news = append(news, list.name+" "+addressList(list.is))
		}
	}
	if len(news) == 0 {
		return "is another node of the same name"
	}
	return "now has " + strings.Join(news, ", ")
}

// peersChanged counts the nodes that joined, left and changed.
func peersChanged(updates []*messages.NodeUpdate) string {
	var joined, left int
	for _, u := range updates {
		if u.GetPrevious() == nil {
			joined++
		} else if u.GetCurrent() == nil {
			left++
		}
	}
	return fmt.Sprintf("of the other nodes %d joined, %d left, %d changed", joined, left, len(updates)-joined-left)
}

func addressList(addresses []string) string {
	if len(addresses) == 0 {
		return "no address"
	}
	return strings.Join(addresses, " ")
}

// NodeContext joins the addresses of this node in Kubernetes and in VPP. The Kubernetes addresses
// come first, in their order, because the first address of a family is the primary one.
func NodeContext(self *messages.Node, vpp []string) *messages.NodeContext {
	addresses := slices.Clone(self.GetAddresses())
	for _, prefix := range rule.Networks(vpp) {
		if !slices.Contains(addresses, prefix.Addr().String()) {
			addresses = append(addresses, prefix.Addr().String())
		}
	}
	return &messages.NodeContext{Node: self, Addresses: addresses}
}

// Used returns the addresses and the pod networks of the nodes of the cluster, each ordered: from
// Kubernetes, and the addresses of their VPPs. Both arguments may be nil.
func Used(in *messages.NodeInput, peers *messages.ClusterState) (addresses, podNetworks []string) {
	addresses, podNetworks = slices.Clone(in.GetSelf().GetAddresses()), slices.Clone(in.GetSelf().GetPodCidrs())
	for _, node := range in.GetNodes() {
		addresses, podNetworks = append(addresses, node.GetAddresses()...), append(podNetworks, node.GetPodCidrs()...)
	}
	for _, peer := range peers.GetNodes() {
		for _, prefix := range rule.Networks(peer.GetVppAddresses()) {
			addresses = append(addresses, prefix.Addr().String())
		}
	}
	slices.Sort(addresses)
	slices.Sort(podNetworks)
	return slices.Compact(addresses), slices.Compact(podNetworks)
}
