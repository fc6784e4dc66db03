package actors_test

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"testing"
	"time"

	"go.fd.io/govpp/binapi/interface_types"

	"github.com/troupe-vpp/troupe/actors"
	"github.com/troupe-vpp/troupe/actors/actorstest"
	"github.com/troupe-vpp/troupe/actors/actorstest/probe"
	"github.com/troupe-vpp/troupe/actors/address"
	"github.com/troupe-vpp/troupe/actors/health"
	"github.com/troupe-vpp/troupe/actors/render/toytest"
	"github.com/troupe-vpp/troupe/kube"
)

// neighbours are the objects of the toy renderer in VPP, ordered.
func neighbours(w *actorstest.World) []string {
	w.Helper()
	all, err := toytest.Read(context.Background(), w.Reader())
	if err != nil {
		w.Fatal(err)
	}
	var held []string
	for _, addr := range slices.SortedFunc(maps.Keys(all), netip.Addr.Compare) {
		if toytest.Ours(all[addr]) && addr != toytest.Marker {
			held = append(held, addr.String())
		}
	}
	return held
}

// TestRendererIsOneLine: with one more line in the tree, a renderer that no other file knows has
// its place in the order, is a part of the node's health, serves, delays readiness, heals and
// sweeps.
func TestRendererIsOneLine(t *testing.T) {
	actorstest.Simulate(t, 1, actorstest.Config{Tree: actors.TreeWithToy}, func(w *actorstest.World) {
		group := actors.TreeWithToy(w.Deps).Children[3].Spec.Children
		if at := len(w.Deps.Renderers()) + 2; group[at].Name != toytest.Name || group[at+1].Name != "upkeep" {
			t.Errorf("the toy is not the last renderer: %v", group)
		}
		await := func(what string, services int, want ...string) {
			t.Helper()
			w.Within(2*time.Minute, what, func() string {
				report := w.Readiness.Load()
				part := slices.IndexFunc(report.Parts, func(p health.Part) bool { return p.Name == toytest.Name })
				if !report.Ready || part < 0 {
					return "not ready: " + report.Reasons()
				}
				for key, status := range w.Statuses() {
					if n := len(status.GetRenders()); n != len(w.Deps.Renderers())+1 {
						return fmt.Sprintf("%d renderers know %s", n, key)
					}
				}
				if n := len(w.Statuses()); n != services {
					return fmt.Sprintf("%d services", n)
				}
				if held := neighbours(w); !slices.Equal(held, want) {
					return fmt.Sprintf("VPP holds %q, want %q", held, want)
				}
				return ""
			})
		}
		w.Source.Serve("web", "10.96.0.10", "10.1.1.2")
		w.Source.Serve("db", "10.96.0.11", "10.1.1.4")
		await("served", 2, "10.96.0.10", "10.96.0.11")
		w.Run(10 * time.Second)

		writes := w.Writes()
		w.Kill(address.Renderer(toytest.Name))
		w.Run(10 * time.Second)
		await("after its death", 2, "10.96.0.10", "10.96.0.11")
		if n := w.Writes() - writes; n != 0 {
			t.Errorf("its death costs %d writes", n)
		}
		uplink := interface_types.InterfaceIndex(w.VPP.Interfaces()[probe.Uplink])
		stolen := toytest.Op{Uplink: uplink, Addr: netip.MustParseAddr("10.96.0.10")}
		if _, err := w.VPP.Exec(stolen.Request()); err != nil {
			t.Fatal(err)
		}
		await("after a drift check", 2, "10.96.0.10", "10.96.0.11")
		w.Source.Change(func(s *kube.Store) { s.Delete("Service", "default/db") })
		w.Kill(address.Renderer(toytest.Name))
		await("swept", 1, "10.96.0.10")
		w.CrashVPP()
		w.Stream.Connect()
		await("in another VPP", 1, "10.96.0.10")
	})
}
