package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/troupe-vpp/troupe/messages"
)

// shortest is the least duration of a watch whose end counts as normal.
const shortest = time.Second

// Leases reads and writes the Leases of a namespace, like the typed client of client-go.
type Leases interface {
	Create(ctx context.Context, lease *coordinationv1.Lease, options metav1.CreateOptions) (*coordinationv1.Lease, error)
	Patch(
		ctx context.Context, name string, kind types.PatchType, patch []byte, options metav1.PatchOptions, subresources ...string,
	) (*coordinationv1.Lease, error)
	Delete(ctx context.Context, name string, options metav1.DeleteOptions) error
	List(ctx context.Context, options metav1.ListOptions) (*coordinationv1.LeaseList, error)
	Watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error)
}

// leaseStore keeps the records in Leases of the API server.
type leaseStore struct {
	leases Leases
	keys   leaseLayout
}

// NewLeaseStore makes a store in the Leases of a namespace. The client should allow at least 5
// requests per second, because a node that joins together with many others sends up to 8 at once.
func NewLeaseStore(leases Leases, namespace string) Store {
	return &leaseStore{leases: leases, keys: leaseLayout{namespace}}
}

// traits satisfies Store. A list of 5,000 nodes has 10,000 Leases, so lists are rare. After the
// first conflict, nodes that join together make about 25 claims per second, whatever their number.
// Each claim sends two watch events to each node.
func (s *leaseStore) traits() traits {
	return traits{name: "the API server", layout: s.keys, relist: time.Hour, turn: 40 * time.Millisecond, maxTurn: 4 * time.Minute}
}

func (s *leaseStore) list(ctx context.Context) (listed, error) {
	list, err := s.leases.List(ctx, metav1.ListOptions{LabelSelector: leaseLabel})
	if err != nil {
		return listed{}, fmt.Errorf("list leases in %s: %w", s.keys.namespace, err)
	}
	out := listed{}
	if out.revision, err = revisionOf(list.ResourceVersion); err != nil {
		return listed{}, err
	}
	for i := range list.Items {
		mod, err := revisionOf(list.Items[i].ResourceVersion)
		if err != nil {
			return listed{}, err
		}
		for _, c := range s.keys.changes(&list.Items[i], mod, false) {
			if !c.deleted {
				out.pairs = append(out.pairs, c.pair)
			}
		}
	}
	return out, nil
}

// watch satisfies Store. Bookmarks keep the revision current from which the next watch continues.
func (s *leaseStore) watch(ctx context.Context, after int64, out func([]change)) (int64, error) {
	begun := time.Now()
	w, err := s.leases.Watch(ctx, metav1.ListOptions{
		LabelSelector: leaseLabel, ResourceVersion: strconv.FormatInt(after, 10), AllowWatchBookmarks: true,
	})
	if err != nil {
		return s.ended(after, err)
	}
	defer w.Stop()
	events := w.ResultChan()
	select {
	case event, ok := <-events:
		// If the connection ends before the answer, client-go returns a closed watch and no error.
		if !ok {
			return s.ended(after, errWatchEnded)
		}
		if after, err = s.pass(after, event, out); err != nil {
			return after, err
		}
	default:
		out(nil)
	}
	for event := range events {
		if after, err = s.pass(after, event, out); err != nil {
			return after, err
		}
	}
	if time.Since(begun) < shortest && ctx.Err() == nil {
		return s.ended(after, errWatchEnded)
	}
	return after, nil
}

// pass passes one event on. Its results are results of watch.
func (s *leaseStore) pass(after int64, event watch.Event, out func([]change)) (int64, error) {
	if event.Type == watch.Error {
		return s.ended(after, apierrors.FromObject(event.Object))
	}
	lease, ok := event.Object.(*coordinationv1.Lease)
	if !ok {
		return 0, fmt.Errorf("%w: event with a %T", errGap, event.Object)
	}
	mod, err := revisionOf(lease.ResourceVersion)
	if err != nil {
		return 0, err
	}
	// The API server has been restored from a backup.
	if mod < after {
		return 0, fmt.Errorf("%w: resource version %d after %d", errGap, mod, after)
	}
	if event.Type == watch.Bookmark {
		out(nil)
	} else {
		out(s.keys.changes(lease, mod, event.Type == watch.Deleted))
	}
	return mod, nil
}

// ended returns the revision at which to continue after a watch was refused or broke.
func (s *leaseStore) ended(after int64, err error) (int64, error) {
	if apierrors.IsResourceExpired(err) || apierrors.IsGone(err) || apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) {
		return 0, fmt.Errorf("%w: %w", errGap, err)
	}
	return after, fmt.Errorf("watch leases in %s: %w", s.keys.namespace, err)
}

func (s *leaseStore) transact(ctx context.Context, op *operation) wrote {
	return transactLeases(ctx, s.write, s.keys, op)
}

// write is a leaseWriter. Every change sets spec.renewTime, so that the Lease gets a new resource
// version even if the change repeats a record.
func (s *leaseStore) write(ctx context.Context, w leaseWrite) (int64, error) {
	var lease *coordinationv1.Lease
	var err error
	version := strconv.FormatInt(w.mod, 10)
	switch {
	case w.deletes:
		err = s.leases.Delete(ctx, w.lease, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{ResourceVersion: &version}})
	case w.mod == 0:
		lease, err = s.leases.Create(ctx, w.object(metav1.NowMicro()), metav1.CreateOptions{})
	default:
		lease, err = s.patch(ctx, w, version)
	}
	switch {
	case apierrors.IsAlreadyExists(err) && !strings.HasPrefix(w.lease, leaseIDPrefix):
		return 0, s.taken(ctx, w.lease)
	case apierrors.IsConflict(err), apierrors.IsAlreadyExists(err), apierrors.IsNotFound(err) && w.mod != 0:
		return 0, fmt.Errorf("%w: %w", errGuard, err)
	case err != nil:
		return 0, err
	case lease == nil:
		return 0, nil
	}
	return revisionOf(lease.ResourceVersion)
}

// taken returns the reason why the Lease of a node could not be created: errGuard if another agent
// of that name has created it, otherwise ErrForeign. No list or watch of the store shows a foreign
// Lease.
func (s *leaseStore) taken(ctx context.Context, name string) error {
	list, err := s.leases.List(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + name})
	if err != nil {
		return fmt.Errorf("read lease %s/%s, which exists already: %w", s.keys.namespace, name, err)
	}
	for _, lease := range list.Items {
		if _, ours := lease.Labels[leaseLabel]; !ours {
			holder := "nothing"
			if h := lease.Spec.HolderIdentity; h != nil && *h != "" {
				holder = *h
			}
			return fmt.Errorf("%w: %s/%s, held by %s, has the name of this node and no label %s; delete it, or set nodeStore.namespace",
				ErrForeign, s.keys.namespace, name, holder, leaseLabel)
		}
	}
	return errGuard
}

// patch changes a Lease if it has the given resource version.
func (s *leaseStore) patch(ctx context.Context, w leaseWrite, version string) (*coordinationv1.Lease, error) {
	metadata := map[string]any{"resourceVersion": version, "annotations": w.annotations}
	spec := map[string]any{"renewTime": metav1.NowMicro()}
	if w.record != nil {
		spec["holderIdentity"] = w.record.GetName()
		metadata["ownerReferences"] = w.owners()
	}
	body, err := json.Marshal(map[string]any{"metadata": metadata, "spec": spec})
	if err != nil {
		return nil, err
	}
	return s.leases.Patch(ctx, w.lease, types.MergePatchType, body, metav1.PatchOptions{})
}

// object returns the Lease that a write creates.
func (w leaseWrite) object(now metav1.MicroTime) *coordinationv1.Lease {
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{
		Name: w.lease, Labels: map[string]string{leaseLabel: "v1"}, Annotations: map[string]string{}, OwnerReferences: w.owners(),
	}}
	for name, value := range w.annotations {
		if value != nil {
			lease.Annotations[name] = *value
		}
	}
	holder := w.record.GetName()
	lease.Spec = coordinationv1.LeaseSpec{HolderIdentity: &holder, AcquireTime: &now, RenewTime: &now}
	return lease
}

// owners makes the Node the owner of the Lease that is named after it, so that the garbage
// collector deletes the Lease with the Node. The Lease of an ID has no owner, because it outlasts
// the Node by the grace period.
func (w leaseWrite) owners() []metav1.OwnerReference {
	if w.record.GetUid() == "" || w.lease != w.record.GetName() {
		return nil
	}
	return []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: w.record.GetName(), UID: types.UID(w.record.GetUid())}}
}

// revisionOf reads a resource version, which is a growing number. Kubernetes 1.35 promises this,
// and earlier API servers behave so.
func revisionOf(version string) (int64, error) {
	revision, err := strconv.ParseInt(version, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("resource version %q of the API server is not a number", version)
	}
	return revision, nil
}

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
