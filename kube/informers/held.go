package informers

import (
	"unique"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/troupe-vpp/troupe/messages"
)

// held is what the cache keeps of an object: its normalised form, which the Store shares, and what
// tells it and its version from others. The object itself is garbage once it was read.
type held struct {
	namespace, name, version string
	uid                      types.UID
	value                    any // *messages.Service, EndpointSlice, Node or Pod; immutable
	problems                 []*messages.ObjectError
}

var _ metav1.ObjectMetaAccessor = (*held)(nil)

// GetObjectMeta satisfies metav1.ObjectMetaAccessor, through which client-go reads key and version.
// It is made when asked, so that the cache has no room for its fifteen fields.
func (h *held) GetObjectMeta() metav1.Object {
	return &metav1.ObjectMeta{Namespace: h.namespace, Name: h.name, UID: h.uid, ResourceVersion: h.version}
}

// normalised makes a transform of a function of package normalize. What is no such object (a
// tombstone, one that was transformed already) passes.
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
