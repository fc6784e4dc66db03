package agent

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/troupe-vpp/troupe/actors/address"
	"github.com/troupe-vpp/troupe/bootstrap/api"
	"github.com/troupe-vpp/troupe/messages"
)

// TestBackendOfARunningAgent asks everything that the HTTP server may ask.
func TestBackendOfARunningAgent(t *testing.T) {
	a := run(t, everything(t))
	ready(t, a)
	ctx, b := t.Context(), a.Backend()
	if err := b.Live(); err != nil {
		t.Errorf("live: %v", err)
	}
	settled(t, a)
	services := must(b.Services(ctx))(t)
	if len(services) != 14 || services[0].Key != "default/kubernetes" || services[13].Key != "shop/web" {
		t.Fatalf("services %+v", services)
	}
	for _, s := range services {
		if s.State != api.ServiceInSync && s.State != api.ServiceNotServed || s.Changed.IsZero() {
			t.Errorf("%+v", s)
		}
		detail := must(b.Service(ctx, s.Key))(t)
		if diff := cmp.Diff(detail.Rendered, detail.InVPP); diff != "" || len(detail.Rendered) != s.Rows {
			t.Errorf("%s: %d rows; rendered and in VPP differ: %s", s.Key, s.Rows, diff)
		}
	}
	if _, err := b.Service(ctx, "shop/none"); !errors.Is(err, api.ErrNotFound) {
		t.Errorf("unknown service: %v", err)
	}
	set := must(b.Interfaces(ctx))(t)
	if set.Uplink != UplinkInterface || !cmp.Equal(set.NodeAddresses, []string{"192.168.16.1/24"}) || len(set.Items) != 14 {
		t.Errorf("interfaces %+v", set)
	}
	nodes := must(b.Nodes(ctx))(t)
	if nodes.Self != "shop-a" || nodes.Claim != "held" || len(nodes.Items) != 3 || nodes.Items[0].ID != 1 {
		t.Errorf("nodes %+v", nodes)
	}
	resync := must(b.Resync(ctx))(t)
	if r := resync.Renderers[0]; r.Renderer != "nat44" || !r.InSync || r.Epoch == 0 {
		t.Errorf("resync %+v", resync)
	}
	if diff := must(b.Diff(ctx))(t); len(diff.Renderers[0].Operations) > 0 || diff.Renderers[0].Error != "" {
		t.Errorf("diff %+v", diff)
	}
	events := must(b.Events(ctx, api.EventQuery{Limit: 1000}))(t)
	if len(events.Items) < 5 || events.Next != 0 {
		t.Errorf("%d events, next %d", len(events.Items), events.Next)
	}
	for _, page := range []int{1, 3} {
		part := must(b.Events(ctx, api.EventQuery{Limit: page, Before: events.Items[0].Seq + 1}))(t)
		if len(part.Items) != page || part.Next != part.Items[page-1].Seq || part.Items[0].Seq != events.Items[0].Seq {
			t.Errorf("page of %d: %+v", page, part)
		}
	}
}

// settled waits until the services know what readiness knows already.
func settled(t *testing.T, a *Agent) {
	t.Helper()
	eventually(t, "no service is pending", func() bool {
		services, err := a.Backend().Services(t.Context())
		return err == nil && len(services) == 14 && !slices.ContainsFunc(services, func(s api.Service) bool { return s.State == api.ServicePending })
	})
}

// must takes a value that comes without an error.
func must[T any](value T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}

// TestActorsOfARunningAgent looks at every actor and commands some.
func TestActorsOfARunningAgent(t *testing.T) {
	cfg := everything(t)
	a := run(t, cfg)
	ready(t, a)
	ctx, b := t.Context(), a.Backend()
	all := must(b.Actors(ctx))(t)
	if len(all) < 20 || all[0].Path != address.RootName {
		t.Fatalf("%d actors", len(all))
	}
	for _, one := range all {
		if got := must(b.Actor(ctx, one.Path))(t); got.Path != one.Path || got.Kind == "" || got.State == "" || got.Incarnation != 1 {
			t.Errorf("%+v", got)
		}
		if state := must(b.State(ctx, one.Path))(t); !json.Valid(state) {
			t.Errorf("state of %s: %s", one.Path, state)
		}
		if failures := must(b.Failures(ctx, one.Path))(t); len(failures) > 0 {
			t.Errorf("failures of %s: %+v", one.Path, failures)
		}
		must(b.Mailbox(ctx, one.Path))(t)
	}
	path := address.Service("shop/web")
	for _, ask := range map[string]func() error{
		"actor":    func() error { _, err := b.Actor(ctx, "agent/none"); return err },
		"state":    func() error { _, err := b.State(ctx, "agent/none"); return err },
		"mailbox":  func() error { _, err := b.Mailbox(ctx, "agent/none"); return err },
		"failures": func() error { _, err := b.Failures(ctx, "agent/none"); return err },
		"restart":  func() error { return b.Command(ctx, "agent/none", api.VerbRestart) },
	} {
		if err := ask(); !errors.Is(err, api.ErrNotFound) {
			t.Errorf("unknown actor: %v", err)
		}
	}
	if err := b.Command(ctx, path, api.VerbKill); !errors.Is(err, api.ErrUnsupported) {
		t.Errorf("kill without chaos: %v", err)
	}
	for _, verb := range []api.Verb{api.VerbSuspend, api.VerbResume} {
		if err := b.Command(ctx, path, verb); !errors.Is(err, api.ErrUnsupported) || !strings.Contains(err.Error(), "--enable-chaos") {
			t.Errorf("%s without chaos: %v", verb, err)
		}
	}
	if box := must(b.Mailbox(ctx, path))(t); box.Held {
		t.Errorf("suspended without chaos: %+v", box)
	}
	if err := b.Command(ctx, path, "dance"); !errors.Is(err, api.ErrUnsupported) {
		t.Errorf("unknown verb: %v", err)
	}
	commandRestart(ctx, t, b, path)
}

// TestCommandSuspend: with chaos, messages of a suspended actor wait until it is resumed. The
// actors that docs/chaos.md exempts are not suspended.
func TestCommandSuspend(t *testing.T) {
	cfg := everything(t)
	cfg.API.EnableChaos = true
	a := run(t, cfg)
	ready(t, a)
	settled(t, a)
	ctx, b, path := t.Context(), a.Backend(), address.Service("shop/web")
	for _, exempt := range []string{address.RootName, address.Journal, address.World, address.Services} {
		if err := b.Command(ctx, exempt, api.VerbSuspend); !errors.Is(err, api.ErrForbidden) || !strings.Contains(err.Error(), exempt) {
			t.Errorf("suspend %s: %v", exempt, err)
		}
	}
	if err := b.Command(ctx, path, api.VerbSuspend); err != nil {
		t.Fatal(err)
	}
	if box := must(b.Mailbox(ctx, path))(t); !box.Held {
		t.Errorf("suspended, but %+v", box)
	}
	if state := must(b.State(ctx, path))(t); !strings.Contains(string(state), `"key":"shop/web"`) {
		t.Errorf("state of a suspended actor: %s", state)
	}
	a.system.Send(a.system.PID(path), &messages.ServiceSpec{Generation: 7})
	// replaces the other one
	a.system.Send(a.system.PID(path), &messages.ServiceSpec{Generation: 8, Refused: strings.Repeat("x", 5000)})
	a.system.Send(a.system.PID(path), &messages.Replay{Renderer: "nat44"})
	if box := must(b.Mailbox(ctx, path))(t); box.Pending != 2 || box.Messages[0].Body != nil || !strings.Contains(string(box.Messages[1].Body), "nat44") {
		t.Errorf("what waits: %+v", box)
	}
	if err := b.Command(ctx, path, api.VerbSuspend); !errors.Is(err, api.ErrConflict) {
		t.Errorf("suspended twice: %v", err)
	}
	if err := b.Command(ctx, path, api.VerbResume); err != nil {
		t.Fatal(err)
	}
	if box := must(b.Mailbox(ctx, path))(t); box.Held {
		t.Errorf("resumed, but %+v", box)
	}
}

// commandRestart: a restarted actor has a new life and a failure in its books.
func commandRestart(ctx context.Context, t *testing.T, b api.Backend, path string) {
	t.Helper()
	if err := b.Command(ctx, path, api.VerbRestart); err != nil {
		t.Fatal(err)
	}
	eventually(t, path+" lives again", func() bool {
		got, err := b.Actor(ctx, path)
		return err == nil && got.Incarnation == 2 && got.Restarts == 1
	})
	failures := must(b.Failures(ctx, path))(t)
	if len(failures) != 1 || failures[0].Incarnation != 1 || failures[0].Decision != "restart" || failures[0].Time.IsZero() {
		t.Errorf("failures %+v", failures)
	}
	events := must(b.Events(ctx, api.EventQuery{Limit: 10, Kind: "fault"}))(t)
	if len(events.Items) != 1 || events.Items[0].Actor != path {
		t.Errorf("faults %+v", events.Items)
	}
}

// TestResyncMends a row that was removed from VPP outside the agent, on request.
func TestResyncMends(t *testing.T) {
	a := run(t, everything(t))
	ready(t, a)
	rows := a.Simulator().Rows()
	if retval, err := a.Simulator().ForeignRemove(addrPort(t, "10.96.20.1:80"), 6); err != nil || retval != 0 {
		t.Fatalf("%d, %v", retval, err)
	}
	diff := must(a.Backend().Diff(t.Context()))(t)
	one := []string{"10.96.20.1:80/TCP"}
	if r := diff.Renderers[0]; len(r.Operations) != 1 || !cmp.Equal(r.Objects, one) || !cmp.Equal(r.Missing, one) {
		t.Errorf("diff %+v", diff)
	}
	if err := a.Backend().StartResync(t.Context(), api.ResyncRequest{Reason: "a test took a row"}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "mended", func() bool { return cmp.Equal(rows, a.Simulator().Rows()) })
	eventually(t, "the reason is in the journal", func() bool {
		events, err := a.Backend().Events(t.Context(), api.EventQuery{Limit: 100, Kind: "resync"})
		return err == nil && strings.Contains(events.Items[0].Text+events.Items[min(1, len(events.Items)-1)].Text, "(a test took a row)")
	})
}

// TestBackendWithoutVPP: what is not known yet is unavailable, not an empty answer.
func TestBackendWithoutVPP(t *testing.T) {
	cfg := everything(t)
	cfg.VPP.Mode, cfg.VPP.APISocket, cfg.Etcd.Mode = "socket", shortDir(t)+"/none", "none"
	a := run(t, cfg)
	eventually(t, "services are known", func() bool {
		services, err := a.Backend().Services(t.Context())
		return err == nil && len(services) == 14
	})
	if _, err := a.Backend().Interfaces(t.Context()); !errors.Is(err, api.ErrUnavailable) {
		t.Errorf("interfaces: %v", err)
	}
	if diff := must(a.Backend().Diff(t.Context()))(t); diff.Renderers[0].Error == "" {
		t.Errorf("diff %+v", diff)
	}
	if nodes := must(a.Backend().Nodes(t.Context()))(t); nodes.Claim != "none" || len(nodes.Items) != 3 || nodes.Items[2].PodCIDRs[0] != "10.1.3.0/24" {
		t.Errorf("nodes %+v", nodes)
	}
	for _, s := range must(a.Backend().Services(t.Context()))(t) {
		if s.State != api.ServicePending && s.State != api.ServiceNotServed || s.Rows != 0 {
			t.Errorf("%+v", s)
		}
	}
}
