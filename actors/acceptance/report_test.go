package acceptance_test

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/troupe-vpp/troupe/kube/service"
	"github.com/troupe-vpp/troupe/messages"
)

// report is one thing that the troupe says of one frontend: that it is served in another way than
// Kubernetes asks, or not at all. It allows some deviations of this frontend, and it has to be
// true: without one of these deviations it is a false report.
type report struct {
	service, frontend string
	kind              reportKind
	// text is what was said, reason the short form of why for the summary.
	text, reason string
	// instead is what should happen to a packet that is not refused or dropped: some of the
	// observed actions.
	instead []string
	// real is set by the first deviation that the report allows.
	real bool
}

// reportKind says which deviations a report allows.
type reportKind uint8

const (
	unknownReport  reportKind = iota
	notRendered               // no row at all
	notRefused                // no refusal
	notDropped                // no silence
	likeAllClients            // clients of this node get what clients elsewhere get
	forAllClients             // all clients get what is for clients of this node
	notGuarded                // no row, because source ranges cannot be enforced
	affinityPerVIP            // affinity per frontend, with a longer time
	unequalShares             // some endpoints get nothing for a while
	someEndpoints             // not all endpoints have a place in the row
	otherSource               // the source is not replaced, or cannot be
	// a client is local or remote by the interface through which it enters
	byInterface
	unseen // nothing that whole packets show
)

// reportsOf collects what the troupe says of frontends, and checks what the cases exclude:
// conflicts, and missing access lists where VPP has the plugin.
func (r *run) reportsOf(statuses map[string]*messages.ServiceStatus) []*report {
	r.Helper()
	for key, status := range statuses {
		for _, ack := range status.GetRenders() {
			for _, c := range ack.GetConflicts() {
				r.Errorf("%s: %s does not get %s, %s has it: no case has a conflict", r.step, key, c.GetFrontend(), c.GetOwner())
			}
		}
	}
	all := r.reports(statuses)
	for _, one := range all {
		if r.owns != bareVPP && (one.kind == notDropped || one.kind == notGuarded) {
			r.Errorf("%s: access lists drop this: %s", r.step, one.text)
		}
	}
	return all
}

// reports are what the troupe says of frontends.
func (r *run) reports(statuses map[string]*messages.ServiceStatus) []*report {
	r.Helper()
	var all []*report
	for key, status := range statuses {
		var parts []string
		for _, ack := range status.GetRenders() {
			for _, e := range ack.GetUnrendered() {
				parts = append(parts, e.GetMessage())
			}
			for _, a := range ack.GetApproximations() {
				one := approximation(a)
				if slices.Contains(one.instead, untouched) && r.inServiceNetwork(one.frontend) {
					// the routes of VPP refuse these addresses
					one.instead = append(one.instead, unreachable)
				}
				if one.kind == unknownReport {
					r.Errorf("%s: this test does not know what the approximation allows: %s", r.step, one.text)
				}
				all = append(all, one)
			}
		}
		for _, one := range unrendered(status.GetView(), parts) {
			one.service = key
			all = append(all, one)
		}
	}
	return all
}

// inServiceNetwork reports whether the address of a frontend is of a service network, which is
// refused as a whole.
func (r *run) inServiceNetwork(frontend string) bool {
	addr, err := netip.ParseAddr(hostOf(frontend))
	return err == nil && slices.ContainsFunc(r.Serving.ServiceCIDRs, func(p netip.Prefix) bool { return p.Contains(addr) })
}

// approximation reads what a renderer says. The texts are part of the interface: operators read
// them, and this is where their meaning is kept true.
func approximation(a *messages.Approximation) *report {
	r := &report{
		service: a.GetService(), frontend: a.GetFrontend(), reason: a.GetWhy(),
		text: fmt.Sprintf("%s: %s -> %s (%s)", a.GetFrontend(), a.GetWanted(), a.GetRendered(), a.GetWhy()),
	}
	switch {
	case strings.HasPrefix(a.GetRendered(), "reject"):
		r.instead = []string{unreachable}
	case strings.HasPrefix(a.GetRendered(), "no row"):
		r.instead = []string{untouched}
	}
	switch wanted := a.GetWanted(); {
	case strings.HasPrefix(wanted, "reject"):
		r.kind, r.real = notRefused, strings.HasPrefix(a.GetFrontend(), "[") // the cases send no packets of IPv6
	case wanted == "drop":
		r.kind = notDropped
	case strings.HasSuffix(wanted, ": drop, by the address of the client"):
		r.kind, r.real = byInterface, true // the cases have no such clients
	case strings.HasPrefix(wanted, "from local only: "):
		r.kind = forAllClients
	case strings.HasPrefix(wanted, "from local: "):
		r.kind = likeAllClients
	case strings.HasPrefix(wanted, "only clients from "):
		r.kind = notGuarded
	case strings.HasPrefix(wanted, "a client stays with its endpoint"):
		r.kind = affinityPerVIP
	case strings.HasPrefix(wanted, "equal shares"):
		r.kind = unequalShares
	case strings.HasSuffix(wanted, " endpoints"):
		r.kind = someEndpoints
	case strings.Contains(wanted, "source"):
		r.kind = otherSource
	case strings.Contains(a.GetRendered(), "fragments"):
		r.kind, r.real = unseen, true
	}
	return r
}

// unrendered finds out which frontends of a view the troupe says it does not serve. IPv6 and SCTP
// have to be said of each of them.
func unrendered(view *messages.ServiceView, parts []string) []*report {
	var all []*report
	seen := map[string]bool{}
	for _, f := range view.GetFrontends() {
		name, cause := service.FrontendText(f), causeOf(f)
		if seen[name] || cause == "" {
			continue
		}
		seen[name] = true
		if slices.ContainsFunc(parts, func(text string) bool { return strings.HasPrefix(text, "frontend "+name+" is ") }) {
			all = append(all, &report{frontend: name, kind: notRendered, text: name + " is not rendered", reason: "not rendered: " + cause})
		}
	}
	return all
}

// causeOf is why NAT44 cannot serve a frontend; "" where it can.
func causeOf(f *messages.Frontend) string {
	addr, err := netip.ParseAddr(f.GetAddress())
	switch {
	case err != nil:
		return ""
	case addr.Is6():
		return "IPv6"
	case f.GetProtocol() == messages.Protocol_SCTP:
		return "SCTP"
	case len(f.GetAllowSources()) > 0:
		return "source ranges"
	default:
		return ""
	}
}

// allows says whether the report covers a deviation.
func (r *report) allows(d deviation) bool {
	if r.frontend != d.frontend {
		return false
	}
	switch r.kind {
	case notRendered, notGuarded:
		return d.aspect == aspectRow && d.got == nothing || d.aspect == aspectAction && d.got != forward
	case notRefused:
		return d.aspect == aspectAction && d.want == reject && slices.Contains(r.instead, d.got)
	case notDropped:
		return d.aspect == aspectAction && d.want == drop && slices.Contains(r.instead, d.got)
	case byInterface:
		return d.misplaced && d.aspect == aspectAction
	case likeAllClients:
		return d.from == "local" && slices.Contains([]aspect{aspectRow, aspectEndpoints, aspectAction, aspectEndpoint, aspectStarved}, d.aspect)
	case forAllClients:
		return d.from != "local" && d.aspect != aspectAnswer
	case affinityPerVIP:
		return d.aspect == aspectShared || d.aspect == aspectOutlives
	case unequalShares:
		return d.aspect == aspectStarved
	case someEndpoints:
		return d.aspect == aspectEndpoints || d.aspect == aspectStarved
	case otherSource:
		return d.aspect == aspectMasquerade || d.aspect == aspectAnswer || d.aspect == aspectAction && d.want == forward && d.got == drop
	default:
		return false
	}
}
