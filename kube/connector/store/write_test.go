package store

import (
	"errors"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// TestA17Classify: each answer of the API server has its reason.
func TestA17Classify(t *testing.T) {
	services, kind := schema.GroupResource{Resource: "services"}, schema.GroupKind{Kind: "Service"}
	for _, c := range []struct {
		name string
		err  error
		want WriteReason
	}{
		{"409 AlreadyExists", apierrors.NewAlreadyExists(services, "web"), WriteExists},
		{"409 Conflict", apierrors.NewConflict(services, "web", errors.New("modified")), WriteConflict},
		{"404", apierrors.NewNotFound(services, "web"), WriteConflict},
		{"422", apierrors.NewInvalid(kind, "web", field.ErrorList{field.Required(field.NewPath("spec", "ports"), "")}), WriteInvalid},
		{"403", apierrors.NewForbidden(services, "web", errors.New("no")), WriteForbidden},
		{"401", apierrors.NewUnauthorized("no"), WriteForbidden},
		{"429", apierrors.NewTooManyRequestsError("slow down"), WriteUnavailable},
		{"500", apierrors.NewInternalError(errors.New("boom")), WriteUnavailable},
		{"no answer", errors.New("connection refused"), WriteUnavailable},
	} {
		var got *WriteError
		if err := classify("create Service outside/web", c.err); !errors.As(err, &got) || got.Reason != c.want || !errors.Is(err, c.err) {
			t.Errorf("%s: %v, want %s", c.name, err, c.want)
		}
	}
	if err := classify("create Service outside/web", nil); err != nil {
		t.Error(err)
	}
}
