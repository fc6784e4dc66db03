package informers

import (
	"unique"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/troupe-vpp/troupe/messages"
)

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
