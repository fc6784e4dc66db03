package features

import (
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
)

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
