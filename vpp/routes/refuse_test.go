package routes

import (
	"errors"
	"maps"
	"testing"

	"go.fd.io/govpp/binapi/vlib"

	"github.com/troupe-vpp/troupe/vpp/link"
)

// Commands whose answers decide.
const (
	showListeners = "show session state listening lcl 0.0.0.0:0"
	showTCP       = "show tcp punt"
	showUDP       = "show udp punt"
)

// refusing are the answers of a VPP that refuses.
func refusing() map[string]string {
	return map[string]string{
		showListeners: "Thread 0: 0 sessions matched filter\n",
		showTCP:       "IPv4 TCP punt: disabled\nIPv6 TCP punt: disabled\n",
		showUDP:       "IPV4 UDP ports punt : \nIPV6 UDP ports punt : \n",
	}
}

// TestReadUnable: VPP refuses only where every answer is the one that says so.
func TestReadUnable(t *testing.T) {
	const listener = "an application listens on every address of VPP (" + showListeners + ")"
	const tcp, udp = "VPP punts TCP packets (" + showTCP + ")", "VPP punts or serves UDP ports (" + showUDP + ")"
	for _, c := range []struct{ name, command, answer, want string }{
		{"refuses", showUDP, refusing()[showUDP], ""},
		{"with workers", showListeners, "Thread 0: 0 sessions matched filter\r\nThread 1: 0 sessions matched filter\r\n", ""},
		{"with tunnels", showUDP, "IPV4 UDP ports punt : 4789, 4790, 6081\nIPV6 UDP ports punt : 4789, 2152, 4500\n", ""},
		{"a listener", showListeners, "Thread 0: 1 sessions matched filter\n", listener},
		{"a listener of a worker", showListeners, "Thread 0: 0 sessions matched filter\nThread 1: 2 sessions matched filter\n", listener},
		{"ten listeners", showListeners, "Thread 0: 10 sessions matched filter\n", listener},
		{"unknown command", showListeners, "unknown input `state'\n", listener},
		{"TCP is punted", showTCP, "IPv4 TCP punt: enabled\nIPv6 TCP punt: disabled\n", tcp},
		{"TCP of IPv6 is punted", showTCP, "IPv4 TCP punt: disabled\nIPv6 TCP punt: enabled\n", tcp},
		{"no answer about TCP", showTCP, "", tcp},
		{"another UDP port", showUDP, "IPV4 UDP ports punt : 4789, 53\nIPV6 UDP ports punt : \n", udp},
		{"another UDP port of IPv6", showUDP, "IPV4 UDP ports punt : \nIPV6 UDP ports punt : 67\n", udp},
		{"all UDP ports", showUDP, "IPV4 UDP punt: enabled\nIPV6 UDP ports punt : \n", udp},
		{"no answer about UDP", showUDP, "", udp},
	} {
		m := newModel()
		m.cli = refusing()
		m.cli[c.command] = c.answer
		state, err := Read(t.Context(), m, nil, nil)
		if err != nil || state.Unable != c.want {
			t.Errorf("%s: %q, %v, want %q", c.name, state.Unable, err, c.want)
		}
		for kind, want := range map[Kind]Kind{Drop: Drop, Reject: map[bool]Kind{true: Local, false: Reject}[c.want == ""]} {
			check(t, c.name, Route{Kind: want, External: true}, Route{Kind: kind, External: true}.Refusing(state.Unable))
		}
	}
}

// TestReadUnableWithoutAnswer: a link that fails fails the read; a VPP without the message cannot.
func TestReadUnableWithoutAnswer(t *testing.T) {
	for fault, want := range map[error]string{
		link.ErrUnknown:     "",
		link.ErrUnsupported: `VPP does not answer "` + showListeners + `"`,
		error(&link.RetvalError{Message: "cli_inband", Retval: -1}): NoSessionLayer,
	} {
		m := newModel()
		m.fault = only[*vlib.CliInband](fault)
		state, err := Read(t.Context(), m, nil, nil)
		if want == "" && !errors.Is(err, fault) || want != "" && (err != nil || state.Unable != want) {
			t.Errorf("%v: %+v, %v", fault, state, err)
		}
	}
}

// TestRefuseIsReplaced: a route of the other kind is added over the first one.
func TestRefuseIsReplaced(t *testing.T) {
	m := newModel()
	m.register("troupe", 0xcf)
	have := m.read(t, nil, nil)
	for _, kind := range []Kind{Reject, Local, Reject} {
		want := Want{theNetwork: {Kind: kind}, host(at("fd96::1")): {Kind: kind}}
		m.apply(t, have, Diff(have, want, true))
		have = m.read(t, have, want)
		check(t, "routes", map[Place]Kind{{theNetwork, 26}: kind, {host(at("fd96::1")), 26}: kind}, maps.Clone(have.Routes))
	}
}
