package agent

import (
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.fd.io/govpp/api"
	aclapi "go.fd.io/govpp/binapi/acl"
	"go.fd.io/govpp/binapi/acl_types"
	"go.fd.io/govpp/binapi/cnat"
	"go.fd.io/govpp/binapi/feature"
	interfaceapi "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/ip_types"
	"go.fd.io/govpp/binapi/nat44_ed"
	"go.fd.io/govpp/binapi/nat_types"
	"go.fd.io/govpp/binapi/vlib"

	"github.com/troupe-vpp/troupe/bootstrap/config"
	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/acl"
	"github.com/troupe-vpp/troupe/vpp/link"
	"github.com/troupe-vpp/troupe/vpp/nat44"
	"github.com/troupe-vpp/troupe/vpp/owned"
	"github.com/troupe-vpp/troupe/vpp/realvpp"
	"github.com/troupe-vpp/troupe/vpp/rule"
	"github.com/troupe-vpp/troupe/vpp/simulator"
)

// left starts a VPP with everything that an agent with a data directory leaves there, except for
// plugins that it lacks, and with objects of others.
func left(t *testing.T, dir string, without ...string) (v *simulator.VPP, socket string) {
	t.Helper()
	v = simulator.New(simulator.Options{WithoutPlugins: without})
	t.Cleanup(func() { _ = v.Close() })
	socket = filepath.Join(shortDir(t), "vpp")
	succeed(t, v.Listen(socket))
	index, err := v.AddInterface("uplink0", []netip.Prefix{netip.MustParsePrefix("192.168.16.1/24")}, true)
	succeed(t, err)
	_, err = v.AddInterface("uplink1", nil, true)
	succeed(t, err)
	leave(t, socket, dir, index, without == nil)
	return v, socket
}

// TestCleanUp: rows, NAT addresses, output interfaces and access lists of ours go, those of others
// stay where they are. A VPP without access lists is cleaned as well.
func TestCleanUp(t *testing.T) {
	for name, without := range map[string][]string{"with access lists": nil, "without": {"acl"}} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			v, socket := left(t, dir, without...)
			if state := v.State(); !strings.Contains(state, "troupe/") || !strings.Contains(state, "203.0.113.5") || !strings.Contains(state, "uplink1 output") || without == nil && !strings.Contains(state, "troupe/deny/remote") {
				t.Fatalf("nothing to clean up:\n%s", state)
			}
			a := &Agent{cfg: &config.Agent{DataDir: dir}, log: slog.New(slog.DiscardHandler)}
			succeed(t, a.cleanUp(t.Context(), a.recorded(link.New(link.Config{Socket: socket}, a.log))))
			state := v.State()
			if strings.Contains(state, "203.0.113.5") || !strings.Contains(state, "203.0.113.6") || strings.Contains(state, "uplink1 output") {
				t.Errorf("NAT addresses and output interfaces after it:\n%s", state)
			}
			if strings.Contains(state, "troupe/") || without == nil && !strings.Contains(state, "on uplink0 input [0] output []") {
				t.Errorf("after it:\n%s", state)
			}
		})
	}
}

// TestCleanUpWithoutAnAgent: a dry run names the operations and carries out none; the clean-up
// carries them out, and the next one has nothing to do. What the record does not have stays.
func TestCleanUpWithoutAnAgent(t *testing.T) {
	dir := t.TempDir()
	v, socket := left(t, dir)
	cfg := config.Defaults()
	cfg.VPP.APISocket, cfg.DataDir, cfg.Renderer = socket, dir, config.RendererCNAT
	before := v.State()
	wanted, kept, err := CleanUp(t.Context(), cfg, true, slog.New(slog.DiscardHandler))
	succeed(t, err)
	if v.State() != before || len(wanted) < 5 || !slices.ContainsFunc(wanted, func(op string) bool { return strings.Contains(op, "203.0.113.9:80/TCP") }) {
		t.Errorf("dry run: %q, VPP:\n%s", wanted, v.State())
	}
	done, _, err := CleanUp(t.Context(), cfg, false, slog.New(slog.DiscardHandler))
	succeed(t, err)
	if !slices.Equal(done, wanted) {
		t.Errorf("carried out %q, announced %q", done, wanted)
	}
	if want := []string{"kept, owner unknown: NAT44 address 203.0.113.6"}; !slices.Equal(kept, want) {
		t.Errorf("kept %q, want %q", kept, want)
	}
	if state := v.State(); strings.Contains(state, "troupe/") || strings.Contains(state, "203.0.113.5") || !strings.Contains(state, "203.0.113.6") {
		t.Errorf("after it:\n%s", state)
	}
	again, _, err := CleanUp(t.Context(), cfg, true, slog.New(slog.DiscardHandler))
	if succeed(t, err); len(again) > 0 {
		t.Errorf("left: %q", again)
	}
}

// TestCleanUpOfAnotherOwner: on a VPP on which no agent ever ran nothing is changed, whatever
// another owner has there, and all of it is listed.
func TestCleanUpOfAnotherOwner(t *testing.T) {
	t.Run("simulated", func(t *testing.T) {
		v := simulator.New(simulator.Options{})
		t.Cleanup(func() { _ = v.Close() })
		socket := filepath.Join(shortDir(t), "vpp")
		succeed(t, v.Listen(socket))
		for _, name := range []string{"theirs0", "theirs1", "theirs2", "theirs3"} {
			_, err := v.AddInterface(name, nil, true)
			succeed(t, err)
		}
		cleanUpOfAnotherOwner(t, socket, "25.10", v.State)
	})
	t.Run("real", func(t *testing.T) {
		binary, plugins, why := realvpp.Find()
		if why != "" {
			t.Skip(why)
		}
		p := realvpp.Start(t, binary, plugins)
		raw := realvpp.NewRaw(t, p.Socket())
		for range 4 {
			raw.Ask(t, &interfaceapi.CreateLoopback{}, &interfaceapi.CreateLoopbackReply{})
		}
		show := func(what string) string {
			answer := &vlib.CliInbandReply{}
			raw.Ask(t, &vlib.CliInband{Cmd: "show " + what}, answer)
			return answer.Reply
		}
		cleanUpOfAnotherOwner(t, p.Socket(), show("version"), func() (all string) {
			for _, what := range []string{"nat44 interfaces", "nat44 addresses", "nat44 summary", "nat timeouts", "cnat snat-policy", "interface features loop3"} {
				all += show(what)
			}
			return all
		})
	})
}

// cleanUpOfAnotherOwner cleans up a VPP with four interfaces, whose state is a text.
func cleanUpOfAnotherOwner(t *testing.T, socket, version string, state func() string) {
	t.Helper()
	if strings.Contains(version, "26.06") { // its CNAT has more nodes
		send(t, socket,
			&feature.FeatureEnableDisable{SwIfIndex: 4, Enable: true, ArcName: "ip6-unicast", FeatureName: "cnat-lookup-ip6"},
			&feature.FeatureEnableDisable{SwIfIndex: 4, Enable: true, ArcName: "ip6-output", FeatureName: "cnat-writeback-ip6"})
	}
	none := ^interface_types.InterfaceIndex(0)
	send(t, socket, &nat44_ed.Nat44EdPluginEnableDisable{Enable: true},
		&nat44_ed.Nat44InterfaceAddDelFeature{IsAdd: true, SwIfIndex: 1, Flags: nat_types.NAT_IS_INSIDE},
		&nat44_ed.Nat44InterfaceAddDelFeature{IsAdd: true, SwIfIndex: 2, Flags: nat_types.NAT_IS_OUTSIDE},
		&nat44_ed.Nat44EdAddDelOutputInterface{IsAdd: true, SwIfIndex: 3},
		&nat44_ed.Nat44AddDelAddressRange{FirstIPAddress: [4]byte{203, 0, 113, 6}, LastIPAddress: [4]byte{203, 0, 113, 6}, VrfID: ^uint32(0), IsAdd: true},
		&nat44_ed.Nat44AddDelAddressRange{FirstIPAddress: [4]byte{10, 9, 9, 9}, LastIPAddress: [4]byte{10, 9, 9, 9}, VrfID: ^uint32(0), IsAdd: true, Flags: nat_types.NAT_IS_TWICE_NAT},
		&cnat.CnatSetSnatAddresses{SnatIP4: [4]byte{10, 255, 0, 1}, SwIfIndex: none},
		&cnat.CnatSnatPolicyAddDelExcludePfx{Prefix: ip_types.Prefix{Len: 8, Address: ip_types.Address{Un: ip_types.AddressUnionIP4([4]byte{10})}}, IsAdd: 1},
		&feature.FeatureEnableDisable{SwIfIndex: 4, Enable: true, ArcName: "ip6-unicast", FeatureName: "cnat-input-ip6"},
		&feature.FeatureEnableDisable{SwIfIndex: 4, Enable: true, ArcName: "ip6-output", FeatureName: "cnat-output-ip6"},
	)
	before := state()
	cfg := config.Defaults()
	cfg.VPP.APISocket, cfg.DataDir = socket, t.TempDir()
	for _, dryRun := range []bool{true, false} {
		said, kept, err := CleanUp(t.Context(), cfg, dryRun, slog.New(slog.DiscardHandler))
		succeed(t, err)
		if after := state(); after != before || len(said) > 0 {
			t.Errorf("operations %q\nbefore:\n%s\nafter:\n%s", said, before, after)
		}
		if len(kept) != 8 || slices.ContainsFunc(kept, func(text string) bool { return !strings.HasPrefix(text, "kept, owner unknown: ") }) {
			t.Errorf("kept %q", kept)
		}
	}
}

// send sends requests to a VPP as another client, and fails if one of them fails.
func send(t *testing.T, socket string, reqs ...api.Message) {
	t.Helper()
	connected(t, socket, t.TempDir(), func(ctx context.Context, vpp *owned.Watched) {
		results, err := vpp.Do(ctx, reqs)
		succeed(t, err)
		for i, result := range results {
			if result.Err != nil {
				t.Fatalf("%s: %v", reqs[i].GetMessageName(), result.Err)
			}
		}
	})
}

// connected calls a function with the connection of an agent with a data directory.
func connected(t *testing.T, socket, dir string, use func(context.Context, *owned.Watched)) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	up, done := make(chan struct{}, 1), make(chan error, 1)
	a := &Agent{cfg: &config.Agent{DataDir: dir}, log: slog.New(slog.DiscardHandler)}
	vpp := a.recorded(link.New(link.Config{Socket: socket}, a.log))
	go func() {
		done <- vpp.Run(ctx, func(s *messages.LinkState) {
			if s.GetUp() {
				hint(up)
			}
		})
	}()
	defer func() {
		cancel()
		<-done
	}()
	<-up
	use(ctx, vpp)
}

// TestCleanUpOfABusyVPP: clean-up waits on the connection of the link, and so does the next one.
// VPP gets no connection for each.
func TestCleanUpOfABusyVPP(t *testing.T) {
	v := simulator.New(simulator.Options{})
	socket := filepath.Join(shortDir(t), "vpp")
	succeed(t, v.Listen(socket))
	defer v.Close()
	v.Hang()
	a := &Agent{cfg: &config.Agent{}, log: slog.New(slog.DiscardHandler)}
	l := link.New(link.Config{Socket: socket}, a.log)
	defer l.Close()
	vpp := a.recorded(l)
	for range 20 {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		if err := a.cleanUp(ctx, vpp); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("clean-up = %v", err)
		}
		cancel()
	}
	eventually(t, "VPP accepts a connection", func() bool { return v.Accepted() > 0 })
	if n := v.Accepted(); n != 1 || v.Lost() {
		t.Errorf("%d connections, lost = %t", n, v.Lost())
	}
	v.Resume()
	succeed(t, a.cleanUp(t.Context(), vpp))
	if n := v.Accepted(); n != 1 {
		t.Errorf("%d connections", n)
	}
}

// leave puts a row and access lists into VPP, as an agent does, and a foreign list and address.
func leave(t *testing.T, socket, dir string, index uint32, lists bool) {
	t.Helper()
	view := &messages.ServiceView{Key: "shop/web", Frontends: []*messages.Frontend{{
		Address: "203.0.113.9", Port: 80, Protocol: messages.Protocol_TCP, AllowSources: []string{"192.0.2.0/24"},
		Backends: []*messages.Backend{{Address: "10.1.1.2", Port: 8080}},
	}}}
	connected(t, socket, dir, func(ctx context.Context, vpp *owned.Watched) {
		state, err := nat44.Read(ctx, vpp)
		succeed(t, err)
		want := &nat44.Want{Rows: map[rule.Key]nat44.Row{}, Interfaces: map[uint32]bool{index: true}, Outputs: map[uint32]bool{index + 1: true}}
		want.Pool = []netip.Addr{netip.MustParseAddr("203.0.113.5")}
		for _, row := range nat44.Plan(view, nat44.Config{Pads: true}).Rows {
			want.Rows[row.Key] = row
		}
		for _, result := range nat44.Apply(ctx, vpp, nat44.Diff(state, want, true)) {
			succeed(t, result.Err)
		}
	})
	theirs := []api.Message{&nat44_ed.Nat44AddDelAddressRange{FirstIPAddress: [4]byte{203, 0, 113, 6}, LastIPAddress: [4]byte{203, 0, 113, 6}, VrfID: ^uint32(0), IsAdd: true}}
	if lists {
		permit := acl_types.ACLRule{IsPermit: acl_types.ACL_ACTION_API_PERMIT, SrcportOrIcmptypeLast: 65535, DstportOrIcmpcodeLast: 65535}
		theirs = append(theirs, &aclapi.ACLAddReplace{ACLIndex: ^uint32(0), Tag: "theirs", R: []acl_types.ACLRule{permit}},
			&aclapi.ACLInterfaceSetACLList{SwIfIndex: interface_types.InterfaceIndex(index), NInput: 1, Acls: []uint32{0}})
	}
	send(t, socket, theirs...)
	if !lists {
		return
	}
	connected(t, socket, dir, func(ctx context.Context, vpp *owned.Watched) {
		held, err := acl.Read(ctx, vpp)
		succeed(t, err)
		rules := &acl.Want{Rules: acl.Plan(view, acl.Config{}).Rules(), Interfaces: map[uint32]acl.Class{index: acl.Remote}}
		for _, result := range acl.Apply(ctx, vpp, acl.Diff(held, rules, true)) {
			succeed(t, result.Err)
		}
	})
}

func succeed(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
