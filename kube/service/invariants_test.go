package service_test

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"

	"github.com/troupe-vpp/troupe/kube/service"
	"github.com/troupe-vpp/troupe/messages"
)

// invariantBroken says which promise of ServiceView a view breaks; "" if none.
func invariantBroken(view *messages.ServiceView) string {
	if view.GetNotServed() != "" && len(view.GetFrontends())+len(view.GetHealthChecks()) > 0 {
		return "not served (" + view.GetNotServed() + "), but there is something to serve"
	}
	if !slices.IsSortedFunc(view.GetFrontends(), compareKeys) {
		return "rows are not ordered by address, port, protocol, from"
	}
	classes := map[string][]messages.ClientClass{}
	for i, row := range view.GetFrontends() {
		if i > 0 && compareKeys(view.GetFrontends()[i-1], row) == 0 {
			return "two rows for " + service.FrontendText(row)
		}
		if problem := rowInvariantBroken(row); problem != "" {
			return service.FrontendText(row) + ": " + problem
		}
		classes[service.FrontendText(row)] = append(classes[service.FrontendText(row)], row.GetFrom())
	}
	for text, from := range classes {
		whole := slices.Equal(from, []messages.ClientClass{messages.ClientClass_FROM_ANY})
		halves := slices.Equal(from, []messages.ClientClass{messages.ClientClass_FROM_LOCAL, messages.ClientClass_FROM_REMOTE})
		if !whole && !halves {
			return fmt.Sprintf("%s: rows are for %v, want any or local and remote", text, from)
		}
	}
	return ""
}

func compareKeys(a, b *messages.Frontend) int {
	return cmp.Or(cmp.Compare(a.GetAddress(), b.GetAddress()), cmp.Compare(a.GetPort(), b.GetPort()),
		cmp.Compare(a.GetProtocol(), b.GetProtocol()), cmp.Compare(a.GetFrom(), b.GetFrom()))
}

func rowInvariantBroken(row *messages.Frontend) string {
	where, protocol, err := service.ParseFrontendText(service.FrontendText(row))
	switch {
	case err != nil:
		return err.Error()
	case where.Addr().String() != row.GetAddress() || where.Port() == 0 || protocol != row.GetProtocol():
		return "key is not canonical"
	}
	if row.GetAction() != messages.Action_ACTION_FORWARD {
		if len(row.GetBackends()) > 0 || row.GetAffinitySeconds() > 0 || len(row.GetMasqueradeFrom()) > 0 {
			return "details of a forwarding row on a row that does not forward"
		}
		return guardBroken(row)
	}
	if len(row.GetBackends()) == 0 {
		return "forwards to no backend"
	}
	previous := ""
	for _, b := range row.GetBackends() {
		text := service.BackendText(b)
		if text <= previous {
			return "backends are not an ordered set"
		}
		previous = text
		backend, err := netip.ParseAddrPort(text)
		if err != nil || backend.String() != text || backend.Addr().Is4() != where.Addr().Is4() {
			return "backend " + text + " is not canonical or of another family"
		}
	}
	return guardBroken(row)
}

func guardBroken(row *messages.Frontend) string {
	for _, text := range row.GetAllowSources() {
		prefix, err := netip.ParsePrefix(text)
		if err != nil || prefix.Masked().String() != text || prefix.Addr().Is4() != netip.MustParseAddr(row.GetAddress()).Is4() {
			return "source range " + text + " is not canonical or of another family"
		}
	}
	return ""
}
