package events

import (
	"errors"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
)

// verdict is the meaning of an error of the API server for an event.
type verdict int

const (
	// accepted means that there was no error.
	accepted verdict = iota
	// exists means that there is an object of this name.
	exists
	// missing means that there is no such object, or no such namespace.
	missing
	// refused means that the server will never accept the event.
	refused
	// later means that the server cannot accept the event now, or did not answer. It may have
	// carried out the request.
	later
)

// judge classifies an error, and returns the pause that the server asks for; 0 = none.
func judge(err error) (verdict, time.Duration) {
	if err == nil {
		return accepted, 0
	}
	var construction *rest.RequestConstructionError
	if errors.As(err, &construction) {
		return refused, 0
	}
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return later, 0
	}
	var pause time.Duration
	if seconds, ok := apierrors.SuggestsClientDelay(err); ok {
		pause = time.Duration(seconds) * time.Second
	}
	switch code := status.Status().Code; {
	case apierrors.IsAlreadyExists(err):
		return exists, 0
	case code == http.StatusNotFound:
		return missing, 0
	case code == http.StatusUnauthorized, code == http.StatusRequestTimeout, code == http.StatusConflict, code == http.StatusTooManyRequests,
		code >= http.StatusInternalServerError, code == 0:
		return later, pause
	}
	return refused, 0
}
