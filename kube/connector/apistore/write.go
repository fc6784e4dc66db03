package apistore

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/troupe-vpp/troupe/kube/apiserver"
	"github.com/troupe-vpp/troupe/kube/connector"
	"github.com/troupe-vpp/troupe/kube/connector/render"
)

// writeTimeout is the time limit of one write, including its wait for the rate limit.
const writeTimeout = 30 * time.Second

// Write satisfies connector.Store.
func (s *Store) Write(ctx context.Context, w render.Write) (*corev1.Service, error) {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	if w.Service != nil {
		service, err := write(ctx, s.api.Services, w.Verb, w.Service)
		return service, classify(fmt.Sprintf("%s Service %s/%s", w.Verb, w.Service.Namespace, w.Service.Name), err)
	}
	_, err := write(ctx, s.api.EndpointSlices, w.Verb, w.Slice)
	return nil, classify(fmt.Sprintf("%s EndpointSlice %s/%s", w.Verb, w.Slice.Namespace, w.Slice.Name), err)
}

// write sends one write. An update has the compared resource version; a deletion has it as a
// precondition.
func write[P metav1.Object](ctx context.Context, api apiserver.Objects[P], verb render.Verb, object P) (P, error) {
	switch verb {
	case render.Create:
		return api.Create(ctx, object, metav1.CreateOptions{FieldManager: render.Manager})
	case render.Update:
		return api.Update(ctx, object, metav1.UpdateOptions{FieldManager: render.Manager})
	}
	uid, version := object.GetUID(), object.GetResourceVersion()
	err := api.Delete(ctx, object.GetName(), metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid, ResourceVersion: &version}})
	if apierrors.IsNotFound(err) {
		err = nil
	}
	var none P
	return none, err
}

// classify turns the error of a write into a WriteError.
func classify(what string, err error) error {
	if err == nil {
		return nil
	}
	reason := connector.WriteUnavailable
	switch {
	case apierrors.IsAlreadyExists(err):
		reason = connector.WriteExists
	case apierrors.IsConflict(err), apierrors.IsNotFound(err):
		reason = connector.WriteConflict
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err), apierrors.IsRequestEntityTooLargeError(err):
		reason = connector.WriteInvalid
	case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err):
		reason = connector.WriteForbidden
	}
	return &connector.WriteError{Reason: reason, Err: fmt.Errorf("%s: %w", what, err)}
}
