package cluster

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/troupe-vpp/troupe/messages"
)

// mostRequests is the largest number of candidates that a store with Leases tries, because each
// candidate is a request.
const mostRequests = 8

// errGuard refuses a write because the Lease has changed, exists already, or does not exist.
var errGuard = errors.New("the lease has changed")

// leaseWrite is one request: the creation, change or deletion of one Lease.
type leaseWrite struct {
	lease string
	// mod is the resource version that the Lease must have; 0 = it must not exist.
	mod     int64
	deletes bool
	// annotations to write, nil = remove.
	annotations map[string]*string
	// record is the decoded record in annotations, nil if there is none.
	record *messages.NodeRecord
}

// leaseWriter carries out one write and returns the resource version after it. It returns errGuard
// if the Lease has another version.
type leaseWriter func(context.Context, leaseWrite) (int64, error)

// transactLeases carries out an operation as a sequence of writes, each to one Lease and guarded by
// its resource version. The sequence is not atomic. Its order ensures that decide reaches the same
// final state from every point at which the sequence may stop:
//
//  1. the Lease of the ID: its creation is the claim, and only one creation succeeds;
//  2. the Lease of the node, changed or deleted;
//  3. deletions of IDs.
//
// An ID without the Lease of its node stays taken, and its node adopts it. A Lease of a node never
// names an ID that another node could have taken. If the second write is refused, another agent
// acts for this node, and the creation in the first step is undone.
func transactLeases(ctx context.Context, write leaseWriter, l leaseLayout, op *operation) wrote {
	for _, b := range op.branches[:min(len(op.branches), mostRequests)] {
		writes, err := l.writes(op, b)
		if err != nil {
			return wrote{op: op, err: fmt.Errorf("%s %s: %w", op.verb, op.about, err)}
		}
		revision, done, err := carryOut(ctx, write, writes)
		switch {
		case err == nil:
			return wrote{op: op, ok: true, revision: revision}
		case !errors.Is(err, errGuard):
			return wrote{op: op, err: fmt.Errorf("%s %s: %w", op.verb, op.about, err)}
		case done > 0:
			return wrote{op: op}
		}
	}
	return wrote{op: op}
}

// carryOut writes in order until a write fails. It returns the highest resource version and the
// number of successful writes.
func carryOut(ctx context.Context, write leaseWriter, writes []leaseWrite) (revision int64, done int, err error) {
	for i, w := range writes {
		mod, err := write(ctx, w)
		if errors.Is(err, errGuard) && i == 1 && writes[0].mod == 0 && !w.deletes {
			if _, undo := write(ctx, leaseWrite{lease: writes[0].lease, mod: revision, deletes: true}); undo != nil && !errors.Is(undo, errGuard) {
				err = undo
			}
		}
		if err != nil {
			return revision, i, err
		}
		revision = max(revision, mod)
	}
	return revision, len(writes), nil
}

// writes translates one branch of an operation, in the order of transactLeases.
func (l leaseLayout) writes(op *operation, b branch) ([]leaseWrite, error) {
	mods := map[string]int64{}
	for _, guards := range [][]guard{op.guards, b.guards} {
		for _, g := range guards {
			lease, _ := l.split(g.key)
			// A missing key may belong to an existing Lease.
			mods[lease] = max(mods[lease], g.mod)
		}
	}
	var ids, nodes, deletions []leaseWrite
	for _, p := range b.puts {
		lease, annotation := l.split(p.key)
		w := leaseWrite{lease: lease, mod: mods[lease], annotations: map[string]*string{annotation: &p.value}}
		if annotation == recordAnnotation {
			w.record = &messages.NodeRecord{}
			if err := decode([]byte(p.value), w.record, maxRecord); err != nil {
				return nil, err
			}
		}
		if strings.HasPrefix(lease, leaseIDPrefix) {
			ids = append(ids, w)
		} else {
			nodes = append(nodes, w)
		}
	}
	for _, key := range b.deletes {
		lease, annotation := l.split(key)
		switch {
		case strings.HasPrefix(lease, leaseIDPrefix):
			deletions = append(deletions, leaseWrite{lease: lease, mod: mods[lease], deletes: true})
		case annotation == recordAnnotation:
			nodes = []leaseWrite{{lease: lease, mod: mods[lease], deletes: true}}
		case len(nodes) == 0: // only the addresses; otherwise they are deleted with the Lease
			nodes = []leaseWrite{{lease: lease, mod: mods[lease], annotations: map[string]*string{annotation: nil}}}
		}
	}
	return append(append(ids, nodes...), deletions...), nil
}
