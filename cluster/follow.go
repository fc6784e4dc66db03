package cluster

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/troupe-vpp/troupe/messages"
)

// Messages of the follower and the prober to the loop.
type (
	// listed is the complete content of the store at one revision.
	listed struct {
		revision int64
		pairs    []pair
	}
	// changed holds later changes: complete revisions, in order. Without changes it means that the
	// store answers.
	changed struct{ changes []change }
	// probed is the result of a request that checks whether the store answers.
	probed struct{ err error }
)

// follower keeps the keyspace of the loop current. It lists, then watches from the revision of the
// list. When the watch breaks, it watches again if the store can continue, otherwise it lists
// again. It never gives up.
type follower struct {
	store   Store
	cfg     *Config
	backoff wait.Backoff
	log     *slog.Logger
	send    func(any)
	// relist holds a token while a request for a new list is pending.
	relist chan struct{}
}

// askRelist requests a new list. It does not block; one token is enough, because a list is always
// complete.
func (f *follower) askRelist() {
	select {
	case f.relist <- struct{}{}:
	default:
	}
}

// run follows the store until ctx ends.
func (f *follower) run(ctx context.Context) {
	at := int64(0) // the watch starts at this revision; 0 = list first
	for ctx.Err() == nil {
		var err error
		if at == 0 {
			at, err = f.list(ctx)
		}
		if err == nil {
			at, err = f.watch(ctx, at)
		}
		if err == nil || ctx.Err() != nil {
			continue
		}
		if errors.Is(err, errGap) {
			f.log.Info("watch of the node store has a gap, listing again", "err", err)
		} else {
			f.send(probed{err: err})
		}
		sleep(ctx, f.backoff.Step())
	}
}

// list sends a complete list to the loop and returns its revision.
func (f *follower) list(ctx context.Context) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, f.cfg.RequestTimeout)
	defer cancel()
	list, err := f.store.list(ctx)
	if err != nil {
		return 0, err
	}
	f.send(list)
	return list.revision, nil
}

// watch sends changes to the loop until the watch ends. When a new list is requested or due, it
// returns 0 and nil.
func (f *follower) watch(ctx context.Context, after int64) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, f.store.traits().relist)
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		select {
		case <-f.relist:
			cancel()
		case <-ctx.Done():
		}
	}()
	defer func() { <-stopped }()
	defer cancel()
	begun := time.Now()
	at, err := f.store.watch(ctx, after, func(changes []change) { f.send(changed{changes: changes}) })
	if time.Since(begun) > errorFactor*f.cfg.BackoffMax {
		f.backoff = f.cfg.delays(errorFactor) // a watch that lasts is a success
	}
	if ctx.Err() != nil {
		return 0, nil
	}
	return at, err
}

// probe checks at every interval whether the store answers, until ctx ends.
func (f *follower) probe(ctx context.Context, store prober, every time.Duration) {
	for sleep(ctx, every) {
		err := f.probeOnce(ctx, store)
		if errors.Is(err, errGap) {
			f.log.Warn("the node store is another one or has lost data, listing again", "err", err)
			f.askRelist()
			err = nil // it answers
		}
		if ctx.Err() == nil {
			f.send(probed{err: err})
		}
	}
}

func (f *follower) probeOnce(ctx context.Context, store prober) error {
	ctx, cancel := context.WithTimeout(ctx, f.cfg.RequestTimeout)
	defer cancel()
	return store.probe(ctx)
}

// errorFactor makes the back-off after errors longer than after conflicts, because a store that
// does not answer needs longer pauses.
const errorFactor = 16

// delays returns the back-off after conflicts (factor 1) or errors (errorFactor). It never ends.
func (c *Config) delays(factor time.Duration) wait.Backoff {
	const part = 8 // of a delay that is not random
	return wait.Backoff{Duration: factor * c.BackoffMin / part, Factor: 2, Jitter: part - 1, Steps: 32, Cap: factor * c.BackoffMax / part}
}

// sleep waits for d, or returns false when ctx ends earlier.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// Updates returns the changes of single nodes between two states. It is pure; nil is an empty
// state.
//
// A node is a member while it has an ID. Between two states:
//
//	peer                                             update
//	not a member before, nor now                     none, whatever else changed
//	a member now, not before                         joined: previous unset
//	a member before, not now                         left: current unset, even if Kubernetes still
//	                                                 lists it
//	member both times, anything changed              changed: both set (ID, VPP or management
//	                                                 addresses, pod CIDRs, UID)
//	member both times, nothing changed               none
//
//	this node                                        update
//	its management addresses or pod CIDRs changed    changed: both set, with or without an ID; an
//	                                                 unknown node has only its name
//	anything else                                    none: this node has set its ID and its VPP
//	                                                 addresses itself
//
// The order is: left, changed, joined, each by name, so that an ID or an address that moves to
// another node is removed before it is added.
func Updates(previous, current *messages.ClusterState) []*messages.NodeUpdate {
	self := cmp.Or(current.GetSelf(), previous.GetSelf())
	var left, changed, joined []*messages.NodeUpdate
	for name, was := range previous.GetNodes() {
		if name != self && was.GetId() != 0 && current.GetNodes()[name].GetId() == 0 {
			left = append(left, &messages.NodeUpdate{Name: name, Previous: was})
		}
	}
	for name, is := range current.GetNodes() {
		was := previous.GetNodes()[name]
		switch {
		case name == self || is.GetId() == 0:
		case was.GetId() == 0:
			joined = append(joined, &messages.NodeUpdate{Name: name, Current: is})
		case !sameNode(was, is):
			changed = append(changed, &messages.NodeUpdate{Name: name, Previous: was, Current: is})
		}
	}
	if u := selfUpdate(self, previous, current); u != nil {
		changed = append(changed, u)
	}
	for _, list := range [][]*messages.NodeUpdate{left, changed, joined} {
		slices.SortFunc(list, func(a, b *messages.NodeUpdate) int { return strings.Compare(a.GetName(), b.GetName()) })
	}
	return slices.Concat(left, changed, joined)
}

// selfUpdate returns the update of this node, nil if there is none.
func selfUpdate(self string, previous, current *messages.ClusterState) *messages.NodeUpdate {
	was, is := previous.GetNodes()[self], current.GetNodes()[self]
	if self == "" || sameInKubernetes(was, is) {
		return nil
	}
	if was == nil {
		was = &messages.ClusterNode{Name: self}
	}
	if is == nil {
		is = &messages.ClusterNode{Name: self}
	}
	return &messages.NodeUpdate{Name: self, Previous: was, Current: is}
}

// sameNode compares everything that users of Updates see.
func sameNode(a, b *messages.ClusterNode) bool {
	return a == b || a.GetId() == b.GetId() && a.GetUid() == b.GetUid() && slices.Equal(a.GetVppAddresses(), b.GetVppAddresses()) &&
		sameInKubernetes(a, b)
}

func sameInKubernetes(a, b *messages.ClusterNode) bool {
	return sameSet(a.GetManagementAddresses(), b.GetManagementAddresses()) && slices.Equal(a.GetPodCidrs(), b.GetPodCidrs())
}

// sameSet compares addresses regardless of their order, which Kubernetes does not define.
func sameSet(a, b []string) bool {
	if slices.Equal(a, b) {
		return true
	}
	return slices.Equal(slices.Compact(slices.Sorted(slices.Values(a))), slices.Compact(slices.Sorted(slices.Values(b))))
}
