package interfaces

import (
	"context"
	"fmt"
	"net/netip"
	"slices"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/fib_types"
	"go.fd.io/govpp/binapi/ip"

	"github.com/troupe-vpp/troupe/vpp/forwarding"
	"github.com/troupe-vpp/troupe/vpp/link"
)

const (
	// maxDepth bounds how often a path without an interface is looked up again. VPP itself
	// refuses longer recursion chains in practice; a loop ends here.
	maxDepth = 6
	// maxElsewhere bounds the lookups in other tables than 0, which grow with tables times
	// addresses. There is room for the networks and addresses of 5000 nodes in one table.
	maxElsewhere = 16384
	// noInterface is the sw_if_index of a path that leads to an address or table and not to an
	// interface.
	noInterface = ^uint32(0)
	// noTable is the table_id of a path without a table, such as drop.
	noTable = ^uint32(0)
)

// question is one route lookup: the longest match of a prefix in a table, or the exact prefix.
type question struct {
	table  uint32
	prefix netip.Prefix
	exact  bool
}

// answer is the reply to a question.
type answer struct {
	// prefix that matched; invalid when VPP has no route.
	prefix netip.Prefix
	paths  []fib_types.FibPath
}

// readRoutes fills the default routes and the targets of addresses and remote ones. Each is looked
// up in table 0, and in the other tables where table 0 leads nowhere. A default route of table 0 is
// enough for remote addresses; a pod of this node is not behind it.
func readRoutes(ctx context.Context, c link.Caller, raw *Raw, addresses, remote []netip.Addr) error {
	found := &lookups{caller: c, answers: map[question]answer{}}
	default4 := question{prefix: netip.PrefixFrom(netip.IPv4Unspecified(), 0), exact: true}
	default6 := question{prefix: netip.PrefixFrom(netip.IPv6Unspecified(), 0), exact: true}
	questions := []question{default4, default6}
	for _, a := range slices.Concat(addresses, remote) {
		questions = append(questions, host(0, a))
	}
	if err := found.ask(ctx, questions); err != nil {
		return err
	}
	raw.Default4, raw.Default6 = found.target(default4), found.target(default6)
	raw.Targets = make(map[netip.Addr]Target, len(addresses)+len(remote))
	var missing []question
	for k, q := range questions {
		t := found.target(q)
		if !q.exact {
			raw.Targets[q.prefix.Addr()] = t
		}
		if local := k >= 2 && k < 2+len(addresses); len(t.Interfaces) == 0 || local && !t.leads() {
			missing = append(missing, q)
		}
	}
	return readElsewhere(ctx, found, raw, missing)
}

// readElsewhere looks up in the other tables what table 0 does not answer, because some CNIs put
// pods or the uplink into a VRF. The longest match over all tables is used; of equal matches, the
// one in the smallest table.
func readElsewhere(ctx context.Context, found *lookups, raw *Raw, missing []question) error {
	var questions []question
	for _, q := range missing {
		tables := raw.Tables
		if q.prefix.Addr().Is6() {
			tables = raw.tables6
		}
		for _, q.table = range tables {
			questions = append(questions, q)
		}
	}
	// Addresses beyond the limit stay without an interface in this round rather than block VPP
	// with lookups.
	questions = questions[:min(len(questions), maxElsewhere)]
	if err := found.ask(ctx, questions); err != nil {
		return err
	}
	for _, q := range questions {
		t, a := found.target(q), q.prefix.Addr()
		switch {
		case !q.exact:
			if t.leads() && (!raw.Targets[a].leads() || t.Prefix.Bits() > raw.Targets[a].Prefix.Bits()) {
				raw.Targets[a] = t
			}
		case len(t.Interfaces) == 0:
		case a.Is4() && len(raw.Default4.Interfaces) == 0:
			raw.Default4 = t
		case a.Is6() && len(raw.Default6.Interfaces) == 0:
			raw.Default6 = t
		}
	}
	return nil
}

// host returns the lookup of the route that packets to an address take.
func host(table uint32, a netip.Addr) question {
	return question{table: table, prefix: netip.PrefixFrom(a, a.BitLen())}
}

// lookups are the answers to all route lookups of one Read, so that none is sent twice.
type lookups struct {
	caller  link.Caller
	answers map[question]answer
}

// ask looks up the questions, and further ones that follow from recursive paths. Each round is one
// pipelined batch.
func (b *lookups) ask(ctx context.Context, questions []question) error {
	for depth := 0; depth <= maxDepth && len(questions) > 0; depth++ {
		fresh := b.unanswered(questions)
		if err := b.round(ctx, fresh); err != nil {
			return err
		}
		questions = nil
		for _, q := range fresh {
			for _, p := range best(b.answers[q].paths) {
				if next, ok := q.follow(&p); ok {
					questions = append(questions, next)
				}
			}
		}
	}
	return nil
}

// unanswered drops the questions that have an answer, and duplicates: many pods share the next hops
// of their routes.
func (b *lookups) unanswered(questions []question) []question {
	var fresh []question
	seen := map[question]bool{}
	for _, q := range questions {
		if _, known := b.answers[q]; !known && !seen[q] {
			seen[q] = true
			fresh = append(fresh, q)
		}
	}
	return fresh
}

// round sends the lookups in one batch. A return value other than 0 means that there is no such
// route or table.
func (b *lookups) round(ctx context.Context, questions []question) error {
	reqs := make([]api.Message, len(questions))
	for i, q := range questions {
		req := &ip.IPRouteLookup{TableID: q.table, Prefix: forwarding.Prefix(q.prefix)}
		if q.exact {
			req.Exact = 1
		}
		reqs[i] = req
	}
	results, err := b.caller.Do(ctx, reqs)
	if err != nil {
		return fmt.Errorf("look up routes: %w", err)
	}
	for i, r := range results {
		if _, replied := link.Retval(r.Err); !replied {
			return fmt.Errorf("look up route of %s: %w", questions[i].prefix, r.Err)
		}
		b.answers[questions[i]] = newAnswer(r)
	}
	return nil
}

// newAnswer reads the reply to a lookup. VPP leaves the host bits of the question in the prefix.
func newAnswer(r link.Result) answer {
	m, ok := r.Reply.(*ip.IPRouteLookupReply)
	if !ok || r.Err != nil {
		return answer{}
	}
	return answer{
		prefix: forwarding.FromPrefix(m.Route.Prefix),
		paths:  m.Route.Paths,
	}
}

// target follows the answer to a question to the interfaces. It sorts them, so that the order of
// VPP's paths makes no difference.
func (b *lookups) target(q question) Target {
	t := Target{Prefix: b.answers[q].prefix}
	b.collect(q, q.prefix, maxDepth, &t)
	slices.Sort(t.Interfaces)
	t.Interfaces = slices.Compact(t.Interfaces)
	return t
}

// collect adds the interfaces that a question leads to. asked is the prefix of the first question.
func (b *lookups) collect(q question, asked netip.Prefix, depth int, t *Target) {
	for _, p := range best(b.answers[q].paths) {
		if leads(&p) && p.SwIfIndex != noInterface {
			t.Interfaces = append(t.Interfaces, p.SwIfIndex)
		} else if next, ok := q.follow(&p); ok && depth > 0 {
			if found := b.answers[next].prefix; next.prefix == asked && found.Bits() > t.Prefix.Bits() {
				t.Prefix = found
			}
			b.collect(next, asked, depth-1, t)
		}
	}
}

// follow returns the question that a path without an interface leads to: its next hop, or the same
// address in another table.
func (q question) follow(p *fib_types.FibPath) (question, bool) {
	if !leads(p) || p.SwIfIndex != noInterface {
		return question{}, false
	}
	if via := nextHop(p); via.IsValid() {
		return host(p.TableID, via), true
	}
	if p.TableID != q.table && p.TableID != noTable {
		return question{table: p.TableID, prefix: q.prefix, exact: q.exact}, true
	}
	return question{}, false
}

// leads reports whether packets leave VPP by a path, instead of being dropped, rejected or received
// by VPP itself.
func leads(p *fib_types.FibPath) bool {
	switch p.Type {
	case fib_types.FIB_API_PATH_TYPE_LOCAL, fib_types.FIB_API_PATH_TYPE_DROP,
		fib_types.FIB_API_PATH_TYPE_ICMP_UNREACH, fib_types.FIB_API_PATH_TYPE_ICMP_PROHIBIT:
		return false
	default:
		return true
	}
}

// best returns the paths that VPP uses: the paths with the smallest preference. The others are
// backups without traffic.
func best(paths []fib_types.FibPath) []fib_types.FibPath {
	if len(paths) == 0 {
		return nil
	}
	least := slices.MinFunc(paths, func(a, b fib_types.FibPath) int { return int(a.Preference) - int(b.Preference) }).Preference
	var used []fib_types.FibPath
	for _, p := range paths {
		if p.Preference == least {
			used = append(used, p)
		}
	}
	return used
}
