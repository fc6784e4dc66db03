// Package features says what a VPP can do for the agent, by the names in its message table. The
// agent works with VPP 24.06 to 26.06 (docs/vpp-versions.md); most messages are the same in all of
// them.
//
// A feature is something that the agent does with VPP, with all the requests that it takes. Check
// is pure: the link calls it with the table of every new connection (messages.LinkState), and the
// actor of the link puts missing features into readiness.
package features

import (
	"maps"
	"path"
	"reflect"
	"slices"
	"strings"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/acl"
	"go.fd.io/govpp/binapi/arp"
	"go.fd.io/govpp/binapi/cnat"
	"go.fd.io/govpp/binapi/feature"
	"go.fd.io/govpp/binapi/fib"
	interfaces "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/ip"
	"go.fd.io/govpp/binapi/l2"
	"go.fd.io/govpp/binapi/memclnt"
	"go.fd.io/govpp/binapi/nat44_ed"
	"go.fd.io/govpp/binapi/vlib"
	"go.fd.io/govpp/binapi/vpe"
	"go.fd.io/govpp/binapi/vrrp"

	"github.com/troupe-vpp/troupe/messages"
)

// Table reports whether VPP has a message with this name and CRC; with an empty CRC, whether it has
// any of that name.
type Table func(name, crc string) bool

// entry is one thing that the agent does with VPP.
type entry struct {
	name string
	// renderer that needs it; "" = every agent does.
	renderer string
	// without says what the agent does not do without it.
	without string
	// optional marks a feature that Kubernetes does not ask for; it does not count for
	// readiness.
	optional bool
	// requests that it takes, all of them.
	requests []api.Message
	// newer are requests of later versions, each in place of the one of its name.
	newer []api.Message
}

// has reports whether VPP has a message, or what replaces it.
func (e *entry) has(table Table, msg api.Message) bool {
	return table(msg.GetMessageName(), msg.GetCrcString()) || slices.ContainsFunc(e.newer, func(n api.Message) bool {
		return n.GetMessageName() == msg.GetMessageName() && table(n.GetMessageName(), n.GetCrcString())
	})
}

// Check returns what a VPP with this table can do, in the order of presentation.
func Check(table Table) []*messages.VPPFeature {
	all := make([]*messages.VPPFeature, len(features))
	for i, f := range features {
		all[i] = &messages.VPPFeature{Name: f.name, Renderer: f.renderer, Without: f.without, Optional: f.optional}
		for _, msg := range f.messages() {
			if !f.has(table, msg) {
				all[i].Missing = append(all[i].Missing, &messages.VPPMissing{Message: msg.GetMessageName() + "_" + msg.GetCrcString(), Why: Why(table, msg)})
			}
		}
	}
	return all
}

// messages returns the requests of a feature, each with its answers.
func (e *entry) messages() (all []api.Message) {
	for _, request := range e.requests {
		all = append(all, request)
		stem := strings.TrimSuffix(strings.TrimSuffix(request.GetMessageName(), "_dump"), "_get")
		for _, other := range family(request) {
			if name := other.GetMessageName(); name == request.GetMessageName()+"_reply" || stem != request.GetMessageName() && name == stem+"_details" {
				all = append(all, other)
			}
		}
	}
	return all
}

// family returns the messages that the bindings have in the package of this one.
func family(msg api.Message) (all []api.Message) {
	pkg := reflect.TypeOf(msg).Elem().PkgPath()
	registered := api.GetRegisteredMessages()[path.Dir(pkg)]
	for _, name := range slices.Sorted(maps.Keys(registered)) {
		if other := registered[name]; reflect.TypeOf(other).Elem().PkgPath() == pkg {
			all = append(all, other)
		}
	}
	return all
}

// Why says why VPP does not have a message: its plugin is not loaded, or it is a VPP of another
// version.
func Why(table Table, msg api.Message) string {
	if table(msg.GetMessageName(), "") {
		return "it has another version of the message, the agent is for VPP 24.06 to 26.06"
	}
	name := module(msg)
	for _, registered := range api.GetRegisteredMessages() {
		for _, other := range registered {
			if module(other) == name && table(other.GetMessageName(), other.GetCrcString()) {
				return "this version of " + name + " has no such message"
			}
		}
	}
	return "the plugin " + name + " is not loaded (plugins in VPP's startup.conf)"
}

// module is the API module of a message, which has the name of its plugin or of a part of VPP.
func module(msg api.Message) string {
	name := path.Base(reflect.TypeOf(msg).Elem().PkgPath())
	if name == "features" { // the messages of newer.go
		return "cnat"
	}
	return name
}

// Lacks says in one line what a VPP cannot do that an agent with these renderers needs; "" =
// nothing.
func Lacks(found []*messages.VPPFeature, renderers []string) string {
	var lacks []string
	for _, f := range found {
		if len(f.GetMissing()) == 0 || f.GetOptional() || f.GetRenderer() != "" && !slices.Contains(renderers, f.GetRenderer()) {
			continue
		}
		lacks = append(lacks, f.GetWithout()+" ("+Summary(f.GetMissing())+")")
	}
	return strings.Join(lacks, "; ")
}

// Summary names what is missing: a plugin once, and messages by their names.
func Summary(missing []*messages.VPPMissing) string {
	var reasons []string
	names := map[string][]string{}
	for _, m := range missing {
		why := m.GetWhy()
		if names[why] == nil {
			reasons = append(reasons, why)
		}
		names[why] = append(names[why], m.GetMessage())
	}
	for i, why := range reasons {
		if !strings.HasPrefix(why, "the plugin") {
			reasons[i] = strings.Join(names[why], ", ") + ": " + why
		}
	}
	return strings.Join(reasons, "; ")
}

// Names of renderers that a feature belongs to.
const (
	rendererNAT44  = "nat44"
	rendererRoutes = "routes"
	rendererCNAT   = "cnat"
)

// features is every feature with all requests that it takes. A test compares them with the requests
// in the code.
var features = []entry{
	{name: "connection", without: "no connection", requests: []api.Message{&memclnt.SockclntDelete{}, &memclnt.ControlPing{}, &vpe.ShowVersion{}}},
	{name: "interfaces", without: "no interface is found", requests: []api.Message{
		&interfaces.SwInterfaceDump{}, &interfaces.SwInterfaceGetTable{}, &ip.IPAddressDump{}, &ip.IPTableDump{}, &ip.IPRouteLookup{},
	}},
	{name: "unnumbered interfaces", without: "interfaces that borrow an address have none", requests: []api.Message{&ip.IPUnnumberedDump{}}},
	{name: "bridge domains", optional: true, without: "members of bridge domains are not recognised", requests: []api.Message{&l2.BridgeDomainDump{}}},
	{name: "proxy ARP", optional: true, without: "pods in one bridge domain are not served", requests: []api.Message{&arp.ProxyArpDump{}, &arp.ProxyArpIntfcDump{}}},
	{name: "interface events", optional: true, without: "changes of interfaces are found by polling", requests: []api.Message{&interfaces.WantInterfaceEvents{}}},
	{name: "IPv4 services", renderer: rendererNAT44, without: "IPv4 services are not served", requests: []api.Message{
		&nat44_ed.Nat44EdPluginEnableDisable{}, &nat44_ed.Nat44ForwardingEnableDisable{}, &nat44_ed.NatSetTimeouts{}, &nat44_ed.Nat44ShowRunningConfig{},
		&nat44_ed.Nat44InterfaceAddDelFeature{}, &nat44_ed.Nat44InterfaceDump{}, &nat44_ed.Nat44EdAddDelOutputInterface{}, &nat44_ed.Nat44EdOutputInterfaceGet{},
		&nat44_ed.Nat44AddDelAddressRange{}, &nat44_ed.Nat44AddressDump{},
		&nat44_ed.Nat44AddDelLbStaticMapping{}, &nat44_ed.Nat44LbStaticMappingAddDelLocal{}, &nat44_ed.Nat44LbStaticMappingDump{},
		&nat44_ed.Nat44AddDelStaticMappingV2{}, &nat44_ed.Nat44StaticMappingDump{},
		&nat44_ed.Nat44AddDelIdentityMapping{}, &nat44_ed.Nat44IdentityMappingDump{},
		&nat44_ed.NatWorkerDump{}, &nat44_ed.NatSetWorkers{},
	}},
	{name: "NAT44 sessions", renderer: rendererNAT44, without: "expired NAT44 sessions are not freed, and the limit stays what it is", requests: []api.Message{
		&nat44_ed.Nat44SetSessionLimit{}, &nat44_ed.Nat44UserDump{}, &nat44_ed.Nat44UserSessionV3Dump{}, &nat44_ed.Nat44DelSession{}, &vlib.CliInband{},
	}},
	{name: "addresses of rows", renderer: rendererNAT44, without: "addresses that NAT44 leaves behind are not removed", requests: []api.Message{
		&fib.FibSourceDump{}, &ip.IPRouteV2Dump{}, &ip.IPRouteAddDelV2{}, &ip.IPRouteLookupV2{},
	}},
	{name: "source ranges and drops", renderer: rendererNAT44, without: "source ranges and drops are not enforced, what has them is not served", requests: []api.Message{
		&acl.ACLAddReplace{}, &acl.ACLDel{}, &acl.ACLDump{}, &acl.ACLInterfaceListDump{}, &acl.ACLInterfaceSetACLList{},
	}},
	{name: "rejects", renderer: rendererRoutes, without: "addresses without endpoints are not rejected", requests: []api.Message{
		&fib.FibSourceAdd{}, &fib.FibSourceDump{}, &ip.IPRouteAddDelV2{}, &ip.IPRouteV2Dump{}, &ip.IPRouteLookupV2{},
	}},
	{name: "addresses that answer", renderer: "addresses", optional: true, without: "VPP answers no ARP and ND for load-balancer addresses", requests: []api.Message{
		&vrrp.VrrpVrAddDel{}, &vrrp.VrrpVrStartStop{}, &vrrp.VrrpVrDump{}, &vrrp.WantVrrpVrEvents{},
	}},
	{name: "IPv6 services", renderer: rendererCNAT, without: "services of CNAT are not served", requests: []api.Message{
		&cnat.CnatTranslationUpdate{}, &cnat.CnatTranslationDel{}, &cnat.CnatTranslationDump{},
		&cnat.CnatSetSnatAddresses{}, &cnat.CnatGetSnatAddresses{}, &cnat.CnatSetSnatPolicy{}, &cnat.CnatSnatPolicyAddDelIf{},
		&cnat.CnatSnatPolicyAddDelExcludePfx{},
		&feature.FeatureEnableDisable{}, &feature.FeatureIsEnabled{},
	}, newer: []api.Message{&CnatSetSnatPolicy{}}},
	{name: "CNAT of 26.06", renderer: rendererCNAT, optional: true, without: "CNAT is that of 24.06 to 25.10: sessions outlive their backend", requests: []api.Message{
		&CnatSetSnatPolicy{}, &CnatSnatAddressesDump{}, &FeatureCnatEnableDisable{},
		&interfaces.CreateLoopback{}, &interfaces.SwInterfaceSetTable{}, &interfaces.DeleteLoopback{},
	}},
}
