package leasetest

import (
	"encoding/json"
	"errors"
	"net/http"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var errModified = errors.New("the object has been modified; please apply your changes to the latest version and try again")

// reply answers with an object.
func reply(w http.ResponseWriter, object any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(typed(object))
}

// fail answers with an error.
func fail(w http.ResponseWriter, err error) {
	status := metav1.Status{Status: metav1.StatusFailure, Code: http.StatusInternalServerError, Message: err.Error()}
	if api := apierrors.APIStatus(nil); errors.As(err, &api) {
		status = api.Status()
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(int(status.Code))
	_ = json.NewEncoder(w).Encode(typed(&status))
}

// line is one line of a watch.
func line(kind string, object any) []byte {
	text, err := json.Marshal(map[string]any{"type": kind, "object": typed(object)})
	if err != nil {
		panic(err)
	}
	return append(text, '\n')
}

// typed returns a copy of an object with its kind, which clients need to decode it.
func typed(object any) any {
	switch o := object.(type) {
	case *coordinationv1.Lease:
		o = o.DeepCopy()
		o.TypeMeta = metav1.TypeMeta{APIVersion: "coordination.k8s.io/v1", Kind: "Lease"}
		return o
	case *coordinationv1.LeaseList:
		o.TypeMeta = metav1.TypeMeta{APIVersion: "coordination.k8s.io/v1", Kind: "LeaseList"}
		return o
	case *metav1.Status:
		o.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
		return o
	default:
		return object
	}
}
