package interfaces

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	"pgregory.net/rapid"

	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/link"
)

// crowd is a node with n pods behind interfaces of their own.
func crowd(n int) (*fakeVPP, Input) {
	vpp := &fakeVPP{
		interfaces: []RawInterface{{Index: 0, Name: "local0", Device: "local"}, up(1, "host-up", "af_packet", "192.168.50.1/24")},
		routes:     []fakeRoute{route("0.0.0.0/0", via("192.168.50.254")), route("192.168.50.0/24", to(1))},
	}
	in := Input{Boot: "b1", NodeAddresses: []string{"192.168.50.1"}}
	for k := range n {
		index := uint32(k + 2)
		pod := netip.AddrFrom4([4]byte{10, 1, byte(k >> 8), byte(k)})
		vpp.interfaces = append(vpp.interfaces, up(index, fmt.Sprintf("tap%d", k), "virtio", netip.PrefixFrom(pod.Next(), 31).String()))
		vpp.routes = append(vpp.routes, route(pod.String()+"/32", to(index)))
		in.Pods = append(in.Pods, &messages.Pod{Namespace: "n", Name: fmt.Sprint(k), Addresses: []string{pod.String()}})
	}
	return vpp, in
}

// tester is what *testing.T and *rapid.T have in common.
type tester interface {
	Helper()
	Fatal(args ...any)
	Context() context.Context
}

// discovered makes one round of the reader.
func discovered(t tester, r *Reader, vpp link.Caller, in Input) *messages.InterfaceSet {
	t.Helper()
	set, err := r.Discover(t.Context(), vpp, in)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// complete reads everything.
func complete(t tester, vpp link.Caller, in Input) *messages.InterfaceSet {
	t.Helper()
	set, err := new(Reader).Discover(t.Context(), vpp, in)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// requests returns the requests of the next round, without the control_ping of each dump.
func (v *fakeVPP) requests(round func()) (dumps, lookups int) {
	v.dumps, v.lookups = 0, 0
	round()
	return v.dumps, v.lookups
}

// TestQuietRoundsAreSmall: the cost of a quiet round does not depend on the number of interfaces
// and pods.
func TestQuietRoundsAreSmall(t *testing.T) {
	for _, pods := range []int{0, 10, 200} {
		vpp, in := crowd(pods)
		var r Reader
		for range settling {
			if dumps, _ := vpp.requests(func() { discovered(t, &r, vpp, in) }); dumps < 2*pods {
				t.Errorf("%d pods: %d dumps in a complete round", pods, dumps)
			}
		}
		for round := range pods/defaultShare + 2 {
			dumps, lookups := vpp.requests(func() { discovered(t, &r, vpp, in) })
			// Three lists, the addresses of the uplink and of the share in two
			// families, the tables when the share has the address of the node.
			if dumps > 3+2+2*defaultShare+1 || lookups > 3+defaultShare {
				t.Fatalf("%d pods, round %d: %d dumps and %d lookups", pods, round, dumps, lookups)
			}
		}
		if diff := cmp.Diff(complete(t, vpp, in), discovered(t, &r, vpp, in), protocmp.Transform()); diff != "" {
			t.Error(diff)
		}
	}
}

// TestReaderSeesChanges: changes of VPP's lists, the uplink and the default routes are seen at
// once, all others when their turn comes. From then on, and while an interface is new, rounds are
// complete.
func TestReaderSeesChanges(t *testing.T) {
	const pods = 40
	tests := []struct {
		name   string
		change func(*fakeVPP, *Input)
		atOnce bool
	}{
		{"nothing", func(*fakeVPP, *Input) {}, true},
		{"interface added", func(v *fakeVPP, _ *Input) {
			v.interfaces = append(v.interfaces, up(99, "tap99", "virtio", "10.9.9.9/24"))
		}, true},
		{"interface removed", func(v *fakeVPP, _ *Input) { v.interfaces = append(v.interfaces[:20:20], v.interfaces[21:]...) }, true},
		{"interface replaced", func(v *fakeVPP, _ *Input) { v.interfaces[20] = up(20, "other", "virtio", "10.9.9.9/24") }, true},
		{"interface down", func(v *fakeVPP, _ *Input) { v.interfaces[20].AdminUp = false }, true},
		{"interface unnumbered", func(v *fakeVPP, _ *Input) { v.interfaces[20].Unnumbered, v.interfaces[20].Lender = true, 1 }, true},
		{"bridge", func(v *fakeVPP, _ *Input) { v.bridges = []uint32{20} }, true},
		{"address of the uplink", func(v *fakeVPP, _ *Input) {
			v.interfaces[1].Addresses = append(v.interfaces[1].Addresses, netip.MustParsePrefix("192.168.60.1/24"))
		}, true},
		{"default route", func(v *fakeVPP, _ *Input) { v.routes[0] = route("0.0.0.0/0", to(20)) }, true},
		{"default route withdrawn", func(v *fakeVPP, _ *Input) { v.routes = v.routes[1:] }, true},
		{"endpoint", func(_ *fakeVPP, in *Input) { in.LocalEndpoints = []string{"10.1.0.20"} }, true},
		{"pod", func(_ *fakeVPP, in *Input) { in.Pods = in.Pods[1:] }, true},
		{"another VPP", func(v *fakeVPP, in *Input) { in.Boot, v.interfaces[20].Addresses = "b2", nil }, true},
		{"address of a pod's interface", func(v *fakeVPP, _ *Input) { v.interfaces[20].Addresses = nil }, false},
		{"route of a pod", func(v *fakeVPP, _ *Input) { v.routes[20] = route(v.routes[20].prefix.String(), to(5)) }, false},
		{"route of a pod in a VRF", func(v *fakeVPP, _ *Input) { v.routes[20].table = 7 }, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			vpp, in := crowd(pods)
			var r Reader
			for range settling + 1 {
				discovered(t, &r, vpp, in)
			}
			tt.change(vpp, &in)
			want := complete(t, vpp, in)
			within := 1
			if !tt.atOnce {
				within = (pods + 3 + defaultShare - 1) / defaultShare
			}
			for round := 1; ; round++ {
				diff := cmp.Diff(want, discovered(t, &r, vpp, in), protocmp.Transform())
				if diff == "" {
					break
				}
				if round == within {
					t.Fatalf("not seen after %d rounds: %s", round, diff)
				}
			}
		})
	}
}

// TestReaderReadsWhatComesLate: addresses and routes that a CNI adds after the interface are seen
// in the next round.
func TestReaderReadsWhatComesLate(t *testing.T) {
	vpp, in := crowd(40)
	var r Reader
	for range settling + 5 {
		discovered(t, &r, vpp, in)
	}
	vpp.interfaces = append(vpp.interfaces, up(99, "tap99", "virtio"))
	in.Pods = append(in.Pods, &messages.Pod{Namespace: "n", Name: "late", Addresses: []string{"10.7.7.7"}})
	for _, late := range []func(){
		func() {},
		func() {
			vpp.interfaces[len(vpp.interfaces)-1].Addresses = []netip.Prefix{netip.MustParsePrefix("10.7.7.1/24")}
		},
		func() { vpp.routes = append(vpp.routes, route("10.7.7.7/32", to(99))) },
	} {
		late()
		if diff := cmp.Diff(complete(t, vpp, in), discovered(t, &r, vpp, in), protocmp.Transform()); diff != "" {
			t.Error(diff)
		}
	}
}

func TestReaderForgets(t *testing.T) {
	vpp, in := crowd(40)
	var r Reader
	for range settling + 1 {
		discovered(t, &r, vpp, in)
	}
	r.Forget()
	if dumps, _ := vpp.requests(func() { discovered(t, &r, vpp, in) }); dumps < 80 {
		t.Errorf("%d dumps after Forget", dumps)
	}
	for _, name := range []string{"sw_interface_dump", "ip_address_dump", "ip_route_lookup"} {
		for range settling + 1 {
			discovered(t, &r, vpp, in)
		}
		vpp.broken = name
		if set, err := r.Discover(t.Context(), vpp, in); !errors.Is(err, link.ErrUnknown) || set != nil {
			t.Errorf("%s fails: %v, %v", name, set, err)
		}
		vpp.broken = ""
		if dumps, _ := vpp.requests(func() { discovered(t, &r, vpp, in) }); dumps < 80 {
			t.Errorf("%s has failed: %d dumps in the next round", name, dumps)
		}
	}
}

// TestReaderConverges: whatever changes without an event, the reader ends with the result of a
// complete read.
func TestReaderConverges(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pods := rapid.IntRange(0, 8).Draw(t, "pods")
		vpp, in := crowd(pods)
		r := Reader{Share: rapid.IntRange(1, 5).Draw(t, "share")}
		pick := func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "which") }
		t.Repeat(map[string]func(*rapid.T){
			"address": func(*rapid.T) {
				vpp.interfaces[pick(len(vpp.interfaces))].Addresses = []netip.Prefix{netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 2, byte(pick(9)), 1}), 24)}
			},
			"route": func(*rapid.T) { vpp.routes[pick(len(vpp.routes))].paths[0] = to(uint32(pick(len(vpp.interfaces)))) },
			"state": func(*rapid.T) { i := &vpp.interfaces[pick(len(vpp.interfaces))]; i.AdminUp = !i.AdminUp },
			"round": func(t *rapid.T) { discovered(t, &r, vpp, in) },
			"": func(t *rapid.T) {
				for range pods + 3 {
					discovered(t, &r, vpp, in)
				}
				if want, got := complete(t, vpp, in), discovered(t, &r, vpp, in); !proto.Equal(want, got) {
					t.Fatal(cmp.Diff(want, got, protocmp.Transform()))
				}
			},
		})
	})
}
