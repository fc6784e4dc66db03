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
	"go.fd.io/govpp/binapi/interface_types"

	"github.com/troupe-vpp/troupe/bootstrap/config"
	"github.com/troupe-vpp/troupe/bootstrap/outside"
	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/acl"
	"github.com/troupe-vpp/troupe/vpp/link"
	"github.com/troupe-vpp/troupe/vpp/nat44"
	"github.com/troupe-vpp/troupe/vpp/rule"
	"github.com/troupe-vpp/troupe/vpp/simulator"
)

// left starts a VPP with everything that an agent leaves there, except for plugins that it lacks.
func left(t *testing.T, without ...string) (v *simulator.VPP, socket string) {
	t.Helper()
	v = simulator.New(simulator.Options{WithoutPlugins: without})
	t.Cleanup(func() { _ = v.Close() })
	socket = filepath.Join(shortDir(t), "vpp")
	succeed(t, v.Listen(socket))
	index, err := v.AddInterface("uplink0", []netip.Prefix{netip.MustParsePrefix("192.168.16.1/24")}, true)
	succeed(t, err)
	_, err = v.AddInterface("uplink1", nil, true)
	succeed(t, err)
	leave(t, socket, index, without == nil)
	return v, socket
}

// TestCleanUp: rows, NAT addresses, output interfaces and access lists of ours go, those of others
// stay where they are. A VPP without access lists is cleaned as well.
func TestCleanUp(t *testing.T) {
	for name, without := range map[string][]string{"with access lists": nil, "without": {"acl"}} {
		t.Run(name, func(t *testing.T) {
			v, socket := left(t, without...)
			if state := v.State(); !strings.Contains(state, "troupe/") || !strings.Contains(state, "203.0.113.5") || !strings.Contains(state, "uplink1 output") || without == nil && !strings.Contains(state, "troupe/deny/remote") {
				t.Fatalf("nothing to clean up:\n%s", state)
			}
			a := &Agent{cfg: &config.Agent{}, log: slog.New(slog.DiscardHandler), outside: outside.New(outside.Config{})}
			succeed(t, a.outside.Save(t.Context(), "ops", []byte(`{"apiVersion": "troupe.dev/v1alpha1", "kind": "ExternalConfiguration",
				"natAddresses": ["203.0.113.5"], "interfaces": [{"name": "uplink1", "role": "output"}]}`)))
			succeed(t, a.cleanUp(t.Context(), link.New(link.Config{Socket: socket}, a.log)))
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
// carries them out with the NAT addresses of the data directory, and the next one has nothing to
// do.
func TestCleanUpWithoutAnAgent(t *testing.T) {
	v, socket := left(t)
	cfg := config.Defaults()
	cfg.VPP.APISocket, cfg.DataDir, cfg.Renderer = socket, t.TempDir(), config.RendererCNAT
	kept := outside.New(outside.Config{Dir: filepath.Join(cfg.DataDir, "external")})
	succeed(t, kept.Save(t.Context(), "ops", []byte(`{"apiVersion": "troupe.dev/v1alpha1", "kind": "ExternalConfiguration", "natAddresses": ["203.0.113.5"]}`)))

	before := v.State()
	wanted, err := CleanUp(t.Context(), cfg, true, slog.New(slog.DiscardHandler))
	succeed(t, err)
	if v.State() != before || len(wanted) < 5 || !slices.ContainsFunc(wanted, func(op string) bool { return strings.Contains(op, "203.0.113.9:80/TCP") }) {
		t.Errorf("dry run: %q, VPP:\n%s", wanted, v.State())
	}
	done, err := CleanUp(t.Context(), cfg, false, slog.New(slog.DiscardHandler))
	succeed(t, err)
	if !slices.Equal(done, wanted) {
		t.Errorf("carried out %q, announced %q", done, wanted)
	}
	if state := v.State(); strings.Contains(state, "troupe/") || strings.Contains(state, "203.0.113.5") || !strings.Contains(state, "203.0.113.6") {
		t.Errorf("after it:\n%s", state)
	}
	again, err := CleanUp(t.Context(), cfg, true, slog.New(slog.DiscardHandler))
	if succeed(t, err); len(again) > 0 {
		t.Errorf("left: %q", again)
	}
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
	vpp := link.New(link.Config{Socket: socket}, a.log)
	defer vpp.Close()
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

// leave puts a row and access lists into VPP, as an agent does, and a foreign list.
func leave(t *testing.T, socket string, index uint32, lists bool) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	up, done := make(chan struct{}, 1), make(chan error, 1)
	vpp := link.New(link.Config{Socket: socket}, slog.New(slog.DiscardHandler))
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
	view := &messages.ServiceView{Key: "shop/web", Frontends: []*messages.Frontend{{
		Address: "203.0.113.9", Port: 80, Protocol: messages.Protocol_TCP, AllowSources: []string{"192.0.2.0/24"},
		Backends: []*messages.Backend{{Address: "10.1.1.2", Port: 8080}},
	}}}
	state, err := nat44.Read(ctx, vpp)
	succeed(t, err)
	want := &nat44.Want{Rows: map[rule.Key]nat44.Row{}, Interfaces: map[uint32]bool{index: true}, Outputs: map[uint32]bool{index + 1: true}}
	// one of them is not ours
	want.Pool = []netip.Addr{netip.MustParseAddr("203.0.113.5"), netip.MustParseAddr("203.0.113.6")}
	for _, row := range nat44.Plan(view, nat44.Config{Pads: true}).Rows {
		want.Rows[row.Key] = row
	}
	for _, result := range nat44.Apply(ctx, vpp, nat44.Diff(state, want, true)) {
		succeed(t, result.Err)
	}
	if !lists {
		return
	}
	permit := acl_types.ACLRule{IsPermit: acl_types.ACL_ACTION_API_PERMIT, SrcportOrIcmptypeLast: 65535, DstportOrIcmpcodeLast: 65535}
	results, err := vpp.Do(ctx, []api.Message{
		&aclapi.ACLAddReplace{ACLIndex: ^uint32(0), Tag: "theirs", R: []acl_types.ACLRule{permit}},
		&aclapi.ACLInterfaceSetACLList{SwIfIndex: interface_types.InterfaceIndex(index), NInput: 1, Acls: []uint32{0}},
	})
	succeed(t, err)
	for _, result := range results {
		succeed(t, result.Err)
	}
	held, err := acl.Read(ctx, vpp)
	succeed(t, err)
	rules := &acl.Want{Rules: acl.Plan(view, acl.Config{}).Rules(), Interfaces: map[uint32]acl.Class{index: acl.Remote}}
	for _, result := range acl.Apply(ctx, vpp, acl.Diff(held, rules, true)) {
		succeed(t, result.Err)
	}
}

func succeed(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
