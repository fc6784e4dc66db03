package informers

import (
	"sync"
	"unique"

	"google.golang.org/protobuf/proto"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/troupe-vpp/troupe/kube/normalize"
	"github.com/troupe-vpp/troupe/messages"
)

// apply brings the Store up to date with the cache for every object in the queue.
func (s *Source) apply() {
	for i, triggered := range s.queue.take() {
		// The cache has the latest object, perhaps newer than the event; the values in between are
		// not needed. GetByKey never fails here. An object that is missing from the cache is
		// deleted, and so is an object that is not meant for this node.
		object, _, _ := s.indexes[i.kind].GetByKey(i.key)
		if h, present := object.(*held); !present || !s.set(i.key, h, triggered) {
			s.store.Delete(i.kind, i.key)
		}
	}
}

// set records an object, and reports whether it is meant for this node. A server that does not
// implement the selectors also sends Services of other proxies, headless Services, ExternalNames
// and Pods of other nodes. A value is nil if the object has no usable name or cannot be reached.
func (s *Source) set(key string, h *held, triggered int64) bool {
	if !normalize.Selected(h.value, s.config.NodeName) {
		return false
	}
	value := h.value
	// The trigger time is the time of the first change that was not delivered yet, because the
	// changes that coalesced with it have waited shorter.
	if slice, is := value.(*messages.EndpointSlice); is && triggered != 0 && triggered < slice.Triggered && triggered > s.store.SliceTriggered(key) {
		slice = proto.CloneOf(slice)
		slice.Triggered, value = triggered, slice
	}
	s.store.Set(value, h.problems)
	return true
}

// sameVersion reports whether two values are the same version of an object. It is false if the
// server gives no versions.
func sameVersion(a, b any) bool {
	first, err := apimeta.Accessor(a)
	if err != nil {
		return false
	}
	second, err := apimeta.Accessor(b)
	return err == nil && first.GetResourceVersion() != "" &&
		first.GetResourceVersion() == second.GetResourceVersion() && first.GetUID() == second.GetUID()
}

// item names one object of the cluster.
type item struct {
	kind string // of normalize.Kind*
	key  string // "namespace/name", or the name of a node
}

// queue holds the names of changed objects. Handlers add to it and never wait; the worker takes
// everything at once.
type queue struct {
	wake chan struct{} // holds one signal that something was added

	mu sync.Mutex
	// The value is the trigger time of the first waiting change, in Unix nanoseconds; 0 = unknown.
	items map[item]int64
}

// newQueue returns an empty queue.
func newQueue() *queue {
	return &queue{wake: make(chan struct{}, 1), items: map[item]int64{}}
}

// add notes that an object changed. It keeps the trigger time of the first change, because latency
// is measured for the change that waits longest.
func (q *queue) add(i item, triggered int64) {
	q.mu.Lock()
	if first := q.items[i]; first == 0 {
		q.items[i] = triggered
	}
	q.mu.Unlock()
	q.signal()
}

// signal wakes the worker.
func (q *queue) signal() {
	select {
	case q.wake <- struct{}{}:
	default: // the worker has not taken the last signal yet
	}
}

// take returns the items added since the last call.
func (q *queue) take() map[item]int64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	out := q.items
	q.items = map[item]int64{}
	return out
}

// held is the form in which the cache keeps an object: the normalised value, which the Store
// shares, and the name and version of the object. The API object itself is garbage after that.
type held struct {
	namespace, name, version string
	uid                      types.UID
	value                    any // *messages.Service, EndpointSlice, Node or Pod; immutable
	problems                 []*messages.ObjectError
}

var _ metav1.ObjectMetaAccessor = (*held)(nil)

// GetObjectMeta satisfies metav1.ObjectMetaAccessor, through which client-go reads key and version.
// The result is made for each call, so that the cache needs no memory for its fifteen fields.
func (h *held) GetObjectMeta() metav1.Object {
	return &metav1.ObjectMeta{Namespace: h.namespace, Name: h.name, UID: h.uid, ResourceVersion: h.version}
}

// normalised makes a cache transform from a function of package normalize. Other values (a
// tombstone, an object that was transformed already) pass unchanged.
func normalised[T metav1.Object, M any](normalize func(string, T) (M, []*messages.ObjectError)) cache.TransformFunc {
	return func(in any) (any, error) {
		object, ok := in.(T)
		if !ok {
			return in, nil
		}
		h := &held{
			namespace: unique.Make(object.GetNamespace()).Value(), name: object.GetName(), version: object.GetResourceVersion(), uid: object.GetUID(),
		}
		h.value, h.problems = normalize(sourceName, object)
		return h, nil
	}
}
