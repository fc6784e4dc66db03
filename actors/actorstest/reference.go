package actorstest

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/troupe-vpp/troupe/actors/actorstest/probe"
	"github.com/troupe-vpp/troupe/kube/service"
	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/acl"
	"github.com/troupe-vpp/troupe/vpp/nat44"
	"github.com/troupe-vpp/troupe/vpp/routes"
	"github.com/troupe-vpp/troupe/vpp/rule"
)

// views resolves every service on its own.
func (w *World) views() []*messages.ServiceView {
	snapshot := w.Source.Snapshot()
	node := snapshot.GetNode().GetSelf()
	addresses := slices.Clone(node.GetAddresses())
	if !slices.Contains(addresses, probe.UplinkAddress) {
		addresses = append(addresses, probe.UplinkAddress)
	}
	existing := slices.DeleteFunc(slices.Clone(snapshot.GetServices()), func(in *messages.ServiceInput) bool { return in.GetService() == nil })
	return service.ResolveAll(existing, &messages.NodeContext{Node: node, Addresses: addresses}, w.Serving)
}

// refusals computes from scratch which routes VPP has to hold. They are the service networks,
// cluster IPs with a refused or else a dropped port, and load-balancer addresses without a served
// or dropped port. Addresses of nodes, and addresses that may belong to a host, have no route.
func (w *World) refusals() map[netip.Prefix]routes.Kind {
	want := map[netip.Prefix]routes.Kind{}
	for _, network := range w.Serving.ServiceCIDRs {
		want[network] = routes.Reject
	}
	type wishes struct{ reject, drop, external, served bool }
	all := map[string]wishes{}
	for _, view := range w.views() {
		for _, f := range view.GetFrontends() {
			if f.GetScope() != messages.Scope_SCOPE_CLUSTER && f.GetScope() != messages.Scope_SCOPE_EXTERNAL {
				continue
			}
			wish := all[f.GetAddress()]
			wish.reject = wish.reject || f.GetAction() == messages.Action_ACTION_REJECT && f.GetKind() != messages.FrontendKind_KIND_EXTERNAL_IP
			wish.drop = wish.drop || f.GetAction() == messages.Action_ACTION_DROP
			// in these clusters an address is a cluster IP or external, never both
			wish.external = f.GetScope() == messages.Scope_SCOPE_EXTERNAL
			wish.served = wish.served || f.GetAction() != messages.Action_ACTION_REJECT
			all[f.GetAddress()] = wish
		}
	}
	hosts := []string{probe.UplinkAddress}
	for _, node := range w.Source.Snapshot().GetNode().GetNodes() {
		hosts = append(hosts, node.GetAddresses()...)
	}
	uplink := netip.MustParsePrefix(probe.UplinkAddress + "/24")
	for text, wish := range all {
		addr := netip.MustParseAddr(text)
		kind := routes.Reject
		switch {
		case slices.Contains(hosts, text), !wish.reject && !wish.drop, wish.external && (wish.served || uplink.Contains(addr)):
			continue
		case !wish.reject:
			kind = routes.Drop
		}
		want[netip.PrefixFrom(addr, 32)] = kind
	}
	return want
}

// reference computes from scratch what VPP has to hold. Every service is resolved and planned on
// its own. A contested row goes to the lowest rank, then to the service that was created first,
// then to the smaller key. There is none if another client of VPP has a row. Drops of a service
// count at the frontends that it owns, its source ranges everywhere.
func (w *World) reference() (map[rule.Key]nat44.Row, []acl.Rule) {
	type owner struct {
		rank    rule.Rank
		created int64
		key     string
	}
	owners, rows := map[rule.Key]owner{}, map[rule.Key]nat44.Row{}
	plans := map[string]*acl.ServicePlan{}
	config := w.Deps.NAT44
	config.Guarded = true
	for _, view := range w.views() {
		plans[view.GetKey()] = acl.Plan(view, acl.Config{Routed: config.Unreachable})
		plan := nat44.Plan(view, config)
		for _, row := range plan.Claims() {
			mine, other := owner{row.Rank, view.GetCreated(), view.GetKey()}, owners[row.Key]
			before := cmp.Or(cmp.Compare(other.rank, mine.rank), cmp.Compare(other.created, mine.created), strings.Compare(other.key, mine.key)) < 0
			if (other.key == "" || !before) && !w.Foreign[row.Key] {
				owners[row.Key], rows[row.Key] = mine, row
			}
		}
	}
	maps.DeleteFunc(rows, func(_ rule.Key, row nat44.Row) bool { return len(row.Locals) == 0 })
	var counting []acl.Rule
	for key, plan := range plans {
		counting = append(counting, plan.Ranges...)
		for _, rule := range plan.Drops {
			if owner, owned := owners[rule.Key()]; !w.Foreign[rule.Key()] && (!owned || owner.key == key) {
				counting = append(counting, rule)
			}
		}
	}
	return rows, counting
}
