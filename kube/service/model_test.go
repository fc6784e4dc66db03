package service_test

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/troupe-vpp/troupe/kube/kubetest"
	"github.com/troupe-vpp/troupe/kube/service"
	"github.com/troupe-vpp/troupe/messages"
)

// The model is a second implementation of the rules, close to the specification and without regard
// for speed: sets are maps, and nothing is cached. It covers inputs without errors, without slices
// that contradict each other, and with node ports on primary addresses.

// modelEndpoint is one ip:port with its properties.
type modelEndpoint struct {
	text  string
	of    *messages.Endpoint
	local bool
}

// modelEndpoints is the union over the slices of the service, joined with one port.
func modelEndpoints(in *messages.ServiceInput, node *messages.NodeContext, family messages.IPFamily, port *messages.ServicePort) map[string]modelEndpoint {
	all := map[string]modelEndpoint{}
	for _, slice := range in.GetSlices() {
		if slice.GetFamily() != family || slice.GetHeadless() || slice.GetService() != in.GetService().GetName() {
			continue
		}
		for _, p := range slice.GetPorts() {
			if p.GetName() != port.GetName() || p.GetProtocol() != port.GetProtocol() {
				continue
			}
			for _, e := range slice.GetEndpoints() {
				text := netip.AddrPortFrom(netip.MustParseAddr(e.GetAddress()), uint16(p.GetPort())).String()
				all[text] = modelEndpoint{text, e, e.GetNode() != "" && e.GetNode() == node.GetNode().GetName()}
			}
		}
	}
	return all
}

// filter returns the endpoints with a property.
func filter(all map[string]modelEndpoint, has func(modelEndpoint) bool) map[string]modelEndpoint {
	some := map[string]modelEndpoint{}
	for text, e := range all {
		if has(e) {
			some[text] = e
		}
	}
	return some
}

func isReady(e modelEndpoint) bool      { return e.of.GetReady() }
func isLastResort(e modelEndpoint) bool { return e.of.GetServing() && e.of.GetTerminating() }
func isHere(e modelEndpoint) bool       { return e.local }

// modelHints follows one kind of hints if all ready endpoints have such hints and at least one
// names this node or zone.
func modelHints(ready map[string]modelEndpoint, hints func(modelEndpoint) []string, name string) (map[string]modelEndpoint, bool) {
	hinted := filter(ready, func(e modelEndpoint) bool { return len(hints(e)) > 0 })
	ours := filter(ready, func(e modelEndpoint) bool { return slices.Contains(hints(e), name) })
	return ours, name != "" && len(hinted) == len(ready) && len(ours) > 0
}

// modelCluster is the set of the Cluster policy.
func modelCluster(all map[string]modelEndpoint, node *messages.Node) map[string]modelEndpoint {
	ready := filter(all, isReady)
	if len(ready) == 0 {
		return filter(all, isLastResort)
	}
	if ours, ok := modelHints(ready, func(e modelEndpoint) []string { return e.of.GetNodeHints() }, node.GetName()); ok {
		return ours
	}
	if ours, ok := modelHints(ready, func(e modelEndpoint) []string { return e.of.GetZoneHints() }, node.GetZone()); ok {
		return ours
	}
	return ready
}

// modelLocal is the set of the Local policy.
func modelLocal(all map[string]modelEndpoint) map[string]modelEndpoint {
	here := filter(all, isHere)
	if ready := filter(here, isReady); len(ready) > 0 {
		return ready
	}
	return filter(here, isLastResort)
}

// modelRow makes one expected row.
func modelRow(in *messages.ServiceInput, address string, port uint32, protocol messages.Protocol, scope, kind, from string,
	usable bool, set map[string]modelEndpoint, masquerade []string,
) kubetest.Row {
	row := kubetest.Row{
		Frontend: netip.AddrPortFrom(netip.MustParseAddr(address), uint16(port)).String() + "/" + protocol.String(),
		Scope:    scope, Kind: kind, From: from, Endpoints: []string{},
	}
	switch {
	case !usable:
		row.Action, row.Reject = "reject", true
	case len(set) == 0:
		row.Action = "drop"
	default:
		row.Action = "forward"
		for text := range set {
			row.Endpoints = append(row.Endpoints, text)
		}
		row.Endpoints = *sortedSet(row.Endpoints)
		row.AffinitySeconds = in.GetService().GetAffinitySeconds()
		row.MasqueradeFrom = sortedSet(masquerade)
	}
	return row
}

// model is the answer of the rules for a whole service.
func model(in *messages.ServiceInput, node *messages.NodeContext, cfg service.Config) []kubetest.Row {
	rows := []kubetest.Row{}
	s := in.GetService()
	for _, clusterIP := range s.GetClusterIps() {
		family := familyOfText(clusterIP)
		for _, port := range s.GetPorts() {
			rows = append(rows, modelPort(in, node, cfg, clusterIP, family, port)...)
		}
	}
	slices.SortFunc(rows, compareRows)
	return rows
}

func modelPort(in *messages.ServiceInput, node *messages.NodeContext, cfg service.Config, clusterIP string,
	family messages.IPFamily, port *messages.ServicePort,
) []kubetest.Row {
	s := in.GetService()
	all := modelEndpoints(in, node, family, port)
	cluster, local := modelCluster(all, node.GetNode()), modelLocal(all)
	usable := len(filter(all, func(e modelEndpoint) bool { return isReady(e) || isLastResort(e) })) > 0

	internal, masquerade := cluster, []string(nil)
	if s.GetInternalPolicy() == messages.TrafficPolicy_POLICY_LOCAL {
		internal = local
	}
	detector := slices.ContainsFunc(cfg.ClusterCIDRs, func(p netip.Prefix) bool { return familyOfText(p.Addr().String()) == family })
	switch {
	case cfg.MasqueradeAll:
		masquerade = []string{"pod", "node", "remote"}
	case detector:
		masquerade = []string{"node", "remote"}
	}
	rows := []kubetest.Row{}
	// If an external address is also the cluster IP, the rules of the external address apply.
	outside := slices.Contains(s.GetExternalIps(), clusterIP) || slices.ContainsFunc(s.GetLoadBalancer(), func(i *messages.LoadBalancerIngress) bool {
		return i.GetIp() == clusterIP && !i.GetProxy()
	})
	if !outside {
		rows = append(rows, modelRow(in, clusterIP, port.GetPort(), port.GetProtocol(), "cluster", "clusterIP", "any", usable, internal, masquerade))
	}
	external := func(address string, number uint32, scope, kind string) {
		typed := s.GetType() != messages.ServiceType_CLUSTER_IP || len(s.GetExternalIps()) > 0
		if typed && s.GetExternalPolicy() == messages.TrafficPolicy_POLICY_LOCAL && usable {
			rows = append(rows,
				modelRow(in, address, number, port.GetProtocol(), scope, kind, "local", usable, cluster, []string{"node"}),
				modelRow(in, address, number, port.GetProtocol(), scope, kind, "remote", usable, local, nil))
			return
		}
		rows = append(rows, modelRow(in, address, number, port.GetProtocol(), scope, kind, "any", usable, cluster, []string{"pod", "node", "remote"}))
	}
	if outside {
		external(clusterIP, port.GetPort(), "cluster", "clusterIP")
	}
	for _, ip := range s.GetExternalIps() {
		if familyOfText(ip) == family && ip != clusterIP {
			external(ip, port.GetPort(), "external", "externalIP")
		}
	}
	for _, ingress := range s.GetLoadBalancer() {
		if familyOfText(ingress.GetIp()) == family && !ingress.GetProxy() && ingress.GetIp() != clusterIP {
			external(ingress.GetIp(), port.GetPort(), "external", "loadBalancerIP")
		}
	}
	if port.GetNodePort() > 0 {
		for _, text := range node.GetAddresses() {
			if familyOfText(text) == family {
				external(text, port.GetNodePort(), "nodeport", "nodePort")
				break
			}
		}
	}
	return rows
}

func familyOfText(address string) messages.IPFamily {
	if strings.Contains(address, ":") {
		return v6
	}
	return v4
}

// uniqueAddress numbers addresses so that no two endpoints of a generated service contradict each
// other.
func uniqueAddress(family messages.IPFamily, n int) string {
	if family == v6 {
		return "fd00:10::" + strconv.FormatInt(int64(n+1), 16)
	}
	return "10.0.0." + strconv.Itoa(n+1)
}
