package sessions

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/nat44_ed"
	"go.fd.io/govpp/binapi/nat_types"

	"github.com/troupe-vpp/troupe/vpp/link"
	"github.com/troupe-vpp/troupe/vpp/simulator"
)

// mixed is a table with living and expired sessions of all kinds: 30 expired UDP sessions, some of
// them hairpins with a twice-NAT address, 10 living ones, 5 established TCP connections.
func mixed(t testing.TB) *rig {
	r := newRig(t, 1000)
	for range 5 {
		if _, err := r.Dial(simulator.Packet{In: "pod2", Src: netip.AddrPortFrom(clientPod, r.next()), Dst: service, Proto: simulator.ProtoTCP}); err != nil {
			t.Fatal(err)
		}
	}
	r.fill(simulator.ProtoUDP, 20)
	for i := range uint16(10) {
		if !r.from(simulator.ProtoUDP, netip.MustParseAddr("10.1.1.3"), 2000+i) {
			t.Fatal("hairpin refused")
		}
	}
	r.advance(6 * time.Minute)
	for range 10 { // each of them also pushes an expired one out, so put more in
		r.dial(simulator.ProtoUDP)
	}
	return r
}

func (r *rig) next() uint16 { r.ports++; return r.ports }

// expiredIn counts the expired sessions that are left.
func (r *rig) expiredIn() uint64 {
	r.Helper()
	s, err := Look(r.Context(), r.link)
	if err != nil {
		r.Fatal(err)
	}
	return s.All.Expired
}

func TestFreeDeletesTheExpiredOnly(t *testing.T) {
	r := mixed(t)
	if n := r.expiredIn(); n != 20 {
		t.Fatalf("%d expired sessions", n)
	}
	f := Free(t.Context(), r.link, nil, Slice{Deletions: 100, Dumps: 8})
	if f.Err != nil || f.Deleted != 20 || f.Gone+f.Errors != 0 || !f.Complete || len(f.Left) != 0 {
		t.Errorf("freed %+v", f)
	}
	if n := r.SessionCount(); n != 15 {
		t.Errorf("%d sessions are left", n)
	}
	if strings.Contains(r.State(), "timed out") {
		t.Error(r.State())
	}
	if f := Free(t.Context(), r.link, nil, Slice{100, 8}); f.Deleted != 0 || !f.Complete {
		t.Errorf("freed again %+v", f)
	}
}

func TestFreeKeepsToItsSlice(t *testing.T) {
	r := mixed(t)
	var left []User
	for i, want := range []struct{ deleted, dumps int }{{7, 3}, {7, 2}, {6, 2}} {
		r.ResetCounters()
		f := Free(t.Context(), r.link, left, Slice{Deletions: 7, Dumps: 3})
		left = f.Left
		if f.Deleted != want.deleted || f.Err != nil || f.Complete != (i == 2) {
			t.Errorf("slice %d: %+v", i, f)
		}
		c := r.Counters()
		if n := c.Of("nat44_user_dump") + c.Of("nat44_user_session_v3_dump"); n > uint64(want.dumps) {
			t.Errorf("slice %d: %d dumps", i, n)
		}
	}
	if n := r.expiredIn(); n != 0 {
		t.Errorf("%d left", n)
	}
	// One dump at a time is enough too: the users first.
	f := Free(t.Context(), r.link, nil, Slice{Deletions: 7, Dumps: 1})
	if len(f.Left) != 2 || f.Complete {
		t.Errorf("%+v", f)
	}
}

func TestFreeReportsWhatVPPDoesNotWant(t *testing.T) {
	r := mixed(t)
	r.Inject(simulator.Fault{Message: "nat44_del_session", Retval: -1, Times: 3})
	r.Inject(simulator.Fault{Message: "nat44_del_session", Retval: -6, Times: 2})
	f := Free(t.Context(), r.link, nil, Slice{100, 8})
	if f.Errors != 3 || f.Gone != 2 || f.Deleted != 15 || f.Err != nil {
		t.Errorf("freed %+v", f)
	}
	// A session that cannot be deleted does not stop the deletion of the others.
	r.ClearFaults()
	r.Inject(simulator.Fault{Message: "nat44_del_session", Retval: -1})
	if f := Free(t.Context(), r.link, nil, Slice{1, 8}); f.Errors != 1 || len(f.Left) != 1 {
		t.Errorf("freed %+v", f)
	}
}

func TestFreeEndsWithTheConnection(t *testing.T) {
	for name, fault := range map[string]simulator.Fault{
		"users":     {Message: "nat44_user_dump", Disconnect: true},
		"sessions":  {Message: "nat44_user_session_v3_dump", Disconnect: true},
		"deletions": {Message: "nat44_del_session", Disconnect: true, Skip: 4},
	} {
		t.Run(name, func(t *testing.T) {
			r := mixed(t)
			r.Inject(fault)
			f := Free(t.Context(), r.link, nil, Slice{100, 8})
			if !errors.Is(f.Err, link.ErrUnknown) && !errors.Is(f.Err, link.ErrNotSent) && !errors.Is(f.Err, link.ErrDown) || f.Complete {
				t.Errorf("freed %+v", f)
			}
		})
	}
	r := mixed(t)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if f := Free(ended, r.link, nil, Slice{100, 8}); f.Err == nil || f.Deleted != 0 {
		t.Errorf("freed %+v", f)
	}
}

func TestDeletionNamesTheFlowFromInside(t *testing.T) {
	details := nat44_ed.Nat44UserSessionV3Details{
		InsideIPAddress: [4]byte{10, 1, 1, 3}, InsidePort: 8080, ExtHostAddress: [4]byte{10, 1, 1, 2}, ExtHostPort: 1000,
		ExtHostNatAddress: [4]byte{10, 1, 1, 254}, ExtHostNatPort: 2000, Protocol: 6,
	}
	for name, tt := range map[string]struct {
		change func(d *nat44_ed.Nat44UserSessionV3Details)
		want   nat44_ed.Nat44DelSession
	}{
		"plain": {func(*nat44_ed.Nat44UserSessionV3Details) {}, nat44_ed.Nat44DelSession{Port: 8080, Protocol: 6, ExtHostAddress: [4]byte{10, 1, 1, 2}, ExtHostPort: 1000}},
		"twice-NAT": {
			func(d *nat44_ed.Nat44UserSessionV3Details) { d.Flags = nat_types.NAT_IS_TWICE_NAT },
			nat44_ed.Nat44DelSession{Port: 8080, Protocol: 6, ExtHostAddress: [4]byte{10, 1, 1, 254}, ExtHostPort: 2000},
		},
		"echo": {
			func(d *nat44_ed.Nat44UserSessionV3Details) { d.Protocol, d.InsidePort, d.ExtHostPort = 1, 77, 0 },
			nat44_ed.Nat44DelSession{Port: 77, Protocol: 1, ExtHostAddress: [4]byte{10, 1, 1, 2}, ExtHostPort: 77},
		},
		"no ports": {
			func(d *nat44_ed.Nat44UserSessionV3Details) { d.Protocol, d.InsidePort, d.ExtHostPort = 0, 47<<8, 0 },
			nat44_ed.Nat44DelSession{Port: 0, Protocol: 47, ExtHostAddress: [4]byte{10, 1, 1, 2}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := details
			tt.change(&d)
			want := tt.want
			want.Address, want.Flags, want.VrfID = d.InsideIPAddress, nat_types.NAT_IS_INSIDE|nat_types.NAT_IS_EXT_HOST_VALID, 5
			if diff := cmp.Diff(&want, deletion(&d, 5)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// twoTables is a VPP with sessions of one address in the tables 0 and 2.
type twoTables struct {
	sessions []*nat44_ed.Nat44UserSessionV3Details
	deleted  []string
}

func (v *twoTables) Dump(_ context.Context, req api.Message, each func(api.Message)) error {
	switch req.(type) {
	case *nat44_ed.Nat44UserDump:
		each(&nat44_ed.Nat44UserDetails{IPAddress: [4]byte{10, 1, 1, 2}, Nstaticsessions: 3})
		each(&nat44_ed.Nat44UserDetails{IPAddress: [4]byte{10, 1, 1, 2}, VrfID: 2, Nstaticsessions: 1})
	case *nat44_ed.Nat44UserSessionV3Dump:
		for _, s := range v.sessions {
			each(s)
		}
	}
	return nil
}

func (v *twoTables) Do(_ context.Context, reqs []api.Message) ([]link.Result, error) {
	results := make([]link.Result, len(reqs))
	for i, req := range reqs {
		if d, ok := req.(*nat44_ed.Nat44DelSession); ok {
			v.deleted = append(v.deleted, fmt.Sprintf("%d in %d", d.ExtHostPort, d.VrfID))
		}
		results[i].Err = api.NO_SUCH_ENTRY
	}
	return results, nil
}

// TestFreeSparesTheOtherTable: an expired session that has the addresses and ports of a live one of
// another table stays, because a dump does not say which of them is in which table.
func TestFreeSparesTheOtherTable(t *testing.T) {
	session := func(port uint16, expired bool) *nat44_ed.Nat44UserSessionV3Details {
		return &nat44_ed.Nat44UserSessionV3Details{
			InsideIPAddress: [4]byte{10, 1, 1, 2}, InsidePort: 8080, Protocol: protoTCP, ExtHostAddress: [4]byte{10, 9, 9, 9}, ExtHostPort: port, IsTimedOut: expired,
		}
	}
	vpp := &twoTables{sessions: []*nat44_ed.Nat44UserSessionV3Details{session(1, true), session(2, true), session(1, false), session(3, false)}}
	if f := Free(t.Context(), vpp, nil, Slice{Deletions: 10, Dumps: 9}); f.Err != nil || !f.Complete {
		t.Errorf("freed %+v", f)
	}
	if diff := cmp.Diff([]string{"2 in 0", "2 in 2"}, vpp.deleted); diff != "" {
		t.Error(diff)
	}
}
