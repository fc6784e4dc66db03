package acceptance_test

import (
	"fmt"
	"net/netip"
	"testing"

	"github.com/troupe-vpp/troupe/kube"
	"github.com/troupe-vpp/troupe/vpp/simulator"
)

// Why a connection is cut although its endpoint stays in the row: VPP cannot change the weights or
// the affinity of a row. It does not forget the clients of an endpoint that leaves a row with
// affinity.
const (
	becauseSeconds = cutByReplaced + replacedAffinity
	becauseClients = cutByReplaced + replacedClients
)

// TestReplacedRows makes changes that VPP cannot, or once could not, carry out without a row being
// deleted and added again. A connection to an endpoint that stays survives each change, except
// where VPP has to replace the row; each exception has its reason.
func TestReplacedRows(t *testing.T) {
	plain := serviceSpec{name: "plain", ip: "10.96.0.1", portName: "http"}
	ported := serviceSpec{name: "ported", ip: "10.96.0.2", nodePort: 30002}
	sticky := serviceSpec{name: "sticky", ip: "10.96.0.3", affinity: 60}
	renamed, unnamed, longer, many := plain, plain, sticky, make([]netip.Addr, 200)
	renamed.portName, unnamed.portName, longer.affinity = "web", "", 120
	for i := range many {
		many[i] = remotePod(i)
	}
	keeps := localPod(0)
	for _, c := range []struct {
		name          string
		before, after serviceSpec
		first, then   []netip.Addr // besides the endpoint that stays
		cut           string       // "" = kept
	}{
		{"an endpoint comes to a service with a node port, the first one elsewhere", ported, ported, nil, []netip.Addr{remotePod(0)}, ""},
		{"the last endpoint elsewhere goes from a service with a node port", ported, ported, []netip.Addr{remotePod(0)}, nil, ""},
		{"the 36th endpoint comes", plain, plain, many[:34], many[:35], ""},
		{"the 37th endpoint comes", plain, plain, many[:35], many[:36], ""},
		{"the 37th endpoint goes", plain, plain, many[:36], many[:35], ""},
		{"all but two of 37 endpoints go", plain, plain, many[:36], many[:1], ""},
		{"37 endpoints become 127", plain, plain, many[:36], many[:126], ""},
		{"the 128th endpoint comes", plain, plain, many[:126], many[:127], ""},
		{"the 128th endpoint goes", plain, plain, many[:127], many[:126], ""},
		{"half of 128 endpoints go", plain, plain, many[:127], many[:63], ""},
		{"more than half of 128 endpoints go", plain, plain, many[:127], many[:62], ""},
		{"the port of the service is renamed", plain, renamed, nil, nil, ""},
		{"the port of the service loses its name", plain, unnamed, nil, nil, ""},
		{"the port of the service is renamed while endpoints come and go", plain, renamed, many[:2], many[1:4], ""},
		{"a service with affinity gets another endpoint", sticky, sticky, nil, []netip.Addr{localPod(1)}, ""},
		{"a service with affinity loses another endpoint", sticky, sticky, []netip.Addr{localPod(1)}, nil, becauseClients},
		{"a service with affinity gets another endpoint for one of its own", sticky, sticky, []netip.Addr{localPod(1)}, []netip.Addr{localPod(2)}, becauseClients},
		{"the affinity of a service changes", sticky, longer, nil, nil, becauseSeconds},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			n := newCluster(t)
			n.apply(c.before, heldPort, append([]netip.Addr{keeps}, c.first...)...)
			n.Start()
			n.settled()
			open := n.dialTo(c.before.ip, keeps)
			before := n.rows()
			n.link.take()
			n.apply(c.after, heldPort, append([]netip.Addr{keeps}, c.then...)...)
			n.settled()
			err := open.Exchange()
			writes := n.link.take()
			cause := ""
			if err != nil {
				cause = causeOfCut(&held{endpoint: open.Opened().Dst}, before, n.rows(), writes)
			}
			switch {
			case err != nil && cause == "":
				t.Errorf("cut without a cause: %v; written: %v", err, writes)
			case cause != c.cut:
				t.Errorf("cut %q, want %q; written: %v", cause, c.cut, writes)
			}
			n.drained()
			n.Stop()
			mutating := n.Writes()
			n.Start()
			n.settled()
			if written := n.Writes() - mutating; written != 0 {
				t.Errorf("a restart afterwards wrote %d messages, want 0: %v", written, n.link.take())
			}
		})
	}
}

// dialTo opens a connection through port 80 of a cluster IP to this endpoint, from a client that
// was nowhere else before.
func (n *node) dialTo(ip string, endpoint netip.Addr) *simulator.Connection {
	n.Helper()
	for i := range 1000 {
		client := netip.AddrFrom4([4]byte{198, 51, byte(100 + i/200), byte(1 + i%200)})
		open, err := n.VPP.Dial(simulator.Packet{
			In: uplink, Src: netip.AddrPortFrom(client, n.clientPort()), Dst: netip.MustParseAddrPort(ip + ":80"), Proto: simulator.ProtoTCP,
		})
		if err != nil {
			n.Fatal(err)
		}
		n.dialled[open.Opened().Dst.String()] = true
		if open.Opened().Dst.Addr() == endpoint {
			return open
		}
	}
	n.Fatalf("no connection to %s in 1000", endpoint)
	return nil
}

// TestRestartsLeaveContestedAddresses has many services want one address. Whatever the order in
// which they speak after a restart, the row of the owner stays as it is.
func TestRestartsLeaveContestedAddresses(t *testing.T) {
	n := newCluster(t)
	const rivals, restarts = 6, 12
	for i := range rivals {
		s := serviceSpec{name: fmt.Sprint("rival-", i), ip: fmt.Sprint("10.96.0.", i+1), external: "203.0.113.9", created: int64(10 - i)}
		n.apply(s, heldPort, localPod(i))
	}
	n.Start()
	n.settled()
	open := n.dialTo("203.0.113.9", localPod(rivals-1))
	for i := range restarts {
		before := n.Writes()
		n.Stop()
		n.Start()
		n.settled()
		if written := n.Writes() - before; written != 0 {
			t.Errorf("restart %d wrote %d messages, want 0: %v; the connection through the address: %v", i, written, n.link.take(), open.Exchange())
			return
		}
	}
}

// TestInSyncMeansThatRowsAreGone asks for the state of a service that lost its endpoints while VPP
// does not answer. Its row is still there.
func TestInSyncMeansThatRowsAreGone(t *testing.T) {
	n := newCluster(t)
	s := serviceSpec{name: "web", ip: "10.96.0.1"}
	n.apply(s, heldPort, localPod(0))
	n.Start()
	n.settled()
	n.VPP.Hang()
	defer n.VPP.Resume()
	n.Source.Change(func(store *kube.Store) { store.Delete("EndpointSlice", "default/web-1") })
	n.Barrier()
	n.Until("the service has seen the change", func() string {
		if len(n.Statuses()["default/web"].GetView().GetFrontends()[0].GetBackends()) > 0 {
			return "it has not"
		}
		return ""
	})
	n.Barrier()
	for _, ack := range n.Statuses()["default/web"].GetRenders() {
		if held := n.rows(); len(held) > 0 && ack.GetState().String() == "RENDER_IN_SYNC" {
			t.Errorf("%s says %s while VPP holds %v", ack.GetRenderer(), ack.GetState(), n.texts())
		}
	}
}
