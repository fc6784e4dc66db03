package events

import (
	"context"
	"errors"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// result is the result of writing an event.
type result struct {
	verdict verdict
	err     error
	pause   time.Duration // requested by the server; 0 = none
}

// send creates an event. A request without an answer may have been carried out; it can be repeated,
// because the event has the same name again.
func (w *Writer) send(ctx context.Context, k *known) result {
	ctx, cancel := context.WithTimeout(ctx, w.cfg.Timeout)
	defer cancel()
	e := k.object(w.instance)
	_, err := w.client.Events(e.Namespace).Create(ctx, e, metav1.CreateOptions{})
	v, pause := judge(err)
	return result{v, err, pause}
}

// verdict is the meaning of an error of the API server for an event.
type verdict int

const (
	// accepted means that there was no error.
	accepted verdict = iota
	// exists means that there is an object of this name.
	exists
	// refused means that the server will never accept the event, for example because its namespace
	// is gone.
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
	case code == http.StatusUnauthorized, code == http.StatusRequestTimeout, code == http.StatusConflict, code == http.StatusTooManyRequests,
		code >= http.StatusInternalServerError, code == 0:
		return later, pause
	}
	return refused, 0
}
