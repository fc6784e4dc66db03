package events

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
)

var errTest = errors.New("boom")

func TestJudge(t *testing.T) {
	resource := schema.GroupResource{Group: "events.k8s.io", Resource: "events"}
	kind := schema.GroupKind{Group: "events.k8s.io", Kind: "Event"}
	for name, test := range map[string]struct {
		err   error
		want  verdict
		pause time.Duration
	}{
		"nothing":            {nil, accepted, 0},
		"exists":             {apierrors.NewAlreadyExists(resource, "a"), exists, 0},
		"not found":          {apierrors.NewNotFound(resource, "a"), refused, 0},
		"wrapped":            {fmt.Errorf("create: %w", apierrors.NewNotFound(resource, "a")), refused, 0},
		"conflict":           {apierrors.NewConflict(resource, "a", errTest), later, 0},
		"invalid":            {apierrors.NewInvalid(kind, "a", nil), refused, 0},
		"bad request":        {apierrors.NewBadRequest("a"), refused, 0},
		"forbidden":          {apierrors.NewForbidden(resource, "a", errTest), refused, 0},
		"no such method":     {apierrors.NewMethodNotSupported(resource, "patch"), refused, 0},
		"unauthorized":       {apierrors.NewUnauthorized("token expired"), later, 0},
		"too many requests":  {apierrors.NewTooManyRequests("later", 7), later, 7 * time.Second},
		"server timeout":     {apierrors.NewServerTimeout(resource, "create", 3), later, 3 * time.Second},
		"gateway timeout":    {apierrors.NewTimeoutError("late", 0), later, 0},
		"internal error":     {apierrors.NewInternalError(errTest), later, 0},
		"unavailable":        {apierrors.NewServiceUnavailable("starting"), later, 0},
		"some 502":           {apierrors.NewGenericServerResponse(http.StatusBadGateway, "create", resource, "a", "x", 0, true), later, 0},
		"no connection":      {errTest, later, 0},
		"timeout":            {context.DeadlineExceeded, later, 0},
		"impossible request": {&rest.RequestConstructionError{Err: errTest}, refused, 0},
	} {
		if got, pause := judge(test.err); got != test.want || pause != test.pause {
			t.Errorf("%s: %d after %v, want %d after %v", name, got, pause, test.want, test.pause)
		}
	}
}
