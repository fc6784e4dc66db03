package acceptance_test

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/troupe-vpp/troupe/actors/actorstest/probe"
	"github.com/troupe-vpp/troupe/vpp/acl"
	"github.com/troupe-vpp/troupe/vpp/link"
	"github.com/troupe-vpp/troupe/vpp/nat44"
)

// row is one frontend as VPP holds it, translated back from the mapping.
type row struct {
	frontend string
	// endpoints can get new connections: entries of weight 0 never do. Ordered, without
	// duplicates.
	endpoints []string
	// draining ones only keep their connections.
	draining []string
	affinity uint32
	// text is the row as VPP shows it.
	text string
}

// rowPattern takes a line of simulator.Rows apart.
var rowPattern = regexp.MustCompile(`^(\S+)/(\d+) lb \[(.*)\](.*) tag "(.*)"$`)

// rows reads the agent's rows in VPP. Anything else in VPP fails the test: no other client writes
// there.
func (n *node) rows() map[string]row {
	n.Helper()
	rows := n.heldRows()
	maps.DeleteFunc(rows, func(_ string, r row) bool { return len(r.endpoints) == 0 })
	return rows
}

// heldRows are all rows of the agent, including rows that VPP keeps for draining connections.
func (n *node) heldRows() map[string]row {
	n.Helper()
	rows := map[string]row{}
	for _, held := range n.VPP.Rows() {
		line, _ := probe.Serving(held)
		r, err := parseRow(line)
		if err != nil {
			n.Fatalf("row %q: %v", line, err)
		}
		r.draining = probe.Draining(held)
		rows[r.frontend] = r
	}
	return rows
}

func parseRow(line string) (row, error) {
	parts := rowPattern.FindStringSubmatch(line)
	if parts == nil || !strings.HasPrefix(parts[5], "troupe/") {
		return row{}, fmt.Errorf("not a row of ours")
	}
	vip, err := netip.ParseAddrPort(parts[1])
	if err != nil {
		return row{}, err
	}
	proto, err := strconv.ParseUint(parts[2], 10, 8)
	if err != nil {
		return row{}, err
	}
	r := row{frontend: frontendText(vip.Addr(), vip.Port(), uint8(proto)), text: line}
	for _, entry := range strings.Split(parts[3], ", ") {
		if entry == "" {
			break
		}
		endpoint, weight, found := strings.Cut(entry, " weight ")
		if _, err := netip.ParseAddrPort(endpoint); err != nil || !found {
			return row{}, fmt.Errorf("entry %q: %w", entry, err)
		}
		if weight != "0" {
			r.endpoints = append(r.endpoints, endpoint)
		}
	}
	slices.Sort(r.endpoints)
	if len(slices.Compact(slices.Clone(r.endpoints))) != len(r.endpoints) {
		return row{}, fmt.Errorf("an endpoint is entered twice")
	}
	// VPP remembers clients for a shorter time, which does not begin before their sessions end
	tag, _ := nat44.ParseTag(parts[5])
	if r.affinity = tag.Affinity; (r.affinity > 0) != strings.Contains(parts[4], " affinity ") {
		return row{}, fmt.Errorf("the tag says affinity %d", r.affinity)
	}
	return r, nil
}

// dropped reports whether the agent's access lists drop every packet of a kind of clients to a
// frontend.
func (n *node) dropped(to target, from string) bool {
	n.Helper()
	state, err := acl.Read(n.Context(), n.link)
	if errors.Is(err, link.ErrUnsupported) {
		return false
	}
	must(n.T, err)
	everywhere := map[string][]acl.Class{"any": {acl.Remote, acl.Local}, "remote": {acl.Remote}, "local": {acl.Local}}[from]
	for _, class := range everywhere {
		rules := slices.Concat(state.ACLs[acl.DenyTag(class)].Rules, state.ACLs[acl.RecentTag(class)].Rules)
		if !slices.ContainsFunc(rules, func(r acl.Rule) bool {
			return netip.AddrPortFrom(r.VIP, r.Port) == to.at && r.Proto == to.proto && r.From.Bits() == 0
		}) {
			return false
		}
	}
	return true
}

func TestParseRow(t *testing.T) {
	r, err := parseRow(`10.96.0.1:80/6 lb [10.1.1.3:80 weight 7, 10.1.1.2:80 weight 7, 192.0.2.1:1 weight 0] out2in-only self-twice-nat affinity 30 tag "troupe/aaaaaaaaaaaaaaaa/a270"`)
	if err != nil || r.frontend != "10.96.0.1:80/TCP" || r.affinity != 270 || !slices.Equal(r.endpoints, []string{"10.1.1.2:80", "10.1.1.3:80"}) {
		t.Errorf("%+v, %v", r, err)
	}
	for _, line := range []string{
		`10.96.0.1:80/6 lb [10.1.1.3:80 weight 7] out2in-only tag "other"`,
		`10.96.0.1:80/6 to 10.1.1.1:80 tag "troupe/x"`,
		`10.96.0.1:80/6 lb [10.1.1.3:80 weight 7, 10.1.1.3:80 weight 7] tag "troupe/x"`,
	} {
		if _, err := parseRow(line); err == nil {
			t.Errorf("read %s", line)
		}
	}
}
