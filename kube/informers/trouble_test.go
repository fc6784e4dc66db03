package informers

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clienttesting "k8s.io/client-go/testing"
)

// TestDiagnose: a trouble of all resources holds back requests, and each cause says what to do,
// without URLs.
func TestDiagnose(t *testing.T) {
	request := func(err error) error { return &url.Error{Op: "Get", URL: "https://10.0.0.1/api", Err: err} }
	for _, tc := range []struct {
		err     error
		want    string
		general bool
	}{
		{nil, "nodes: ", false},
		{apierrors.NewResourceExpired("old"), "nodes: the watch expired (410 Gone), listing again: old", false},
		{apierrors.NewForbidden(schema.GroupResource{Resource: "nodes"}, "", errors.New("no role")), "no permission to list and watch nodes: bind the ClusterRole", false},
		{apierrors.NewBadRequest("a selector"), "nodes: a selector", false},
		{apierrors.NewUnauthorized("token"), "the API server refuses the credentials (401 Unauthorized): check the token or the client certificate", true},
		{apierrors.NewInternalError(errors.New("starting")), "the API server does not answer: Internal error occurred: starting", true},
		{request(io.EOF), "the API server does not answer: EOF", true},
		{request(&tls.CertificateVerificationError{Err: x509.UnknownAuthorityError{}}), "the certificate of the API server is not trusted: check", true},
		{
			request(fmt.Errorf("readLoopPeekFailedLocked: %w", &net.OpError{Op: "remote error", Err: tls.AlertError(42)})),
			"the API server refuses the TLS connection: check the client certificate: remote error: tls: bad certificate", true,
		},
	} {
		if got := diagnose(tc.err); !strings.HasPrefix(got.String("nodes"), tc.want) || strings.Contains(got.String("nodes"), "://") || unanswered(tc.err) != tc.general {
			t.Errorf("%v: %q, want %q, for all resources: %t", tc.err, got.String("nodes"), tc.want, tc.general)
		}
	}
}

// TestMissingRightsAreOneLine: missing rights are one log line for any number of resources and
// retries, and there is no other line until they are granted.
func TestMissingRightsAreOneLine(t *testing.T) {
	var granted atomic.Bool
	refuse := func(r *running) {
		r.client.PrependReactor("list", "*", func(a clienttesting.Action) (bool, runtime.Object, error) {
			return !granted.Load(), nil, apierrors.NewForbidden(a.GetResource().GroupResource(), "", errors.New("no role"))
		})
	}
	run(t, []runtime.Object{service("web", "10.96.0.1")}, refuse, func(r *running) {
		time.Sleep(time.Hour)
		view := r.settle()
		last := view.Healths[len(view.Healths)-1]
		if view.Healthy() || !strings.Contains(last.Reason, "no permission to list and watch endpointslices, nodes, pods, services: ") {
			t.Errorf("without rights: %+v", view.Healths)
		}
		if lines := r.log.String(); strings.Count(lines, "\n") != 1 || !strings.Contains(lines, "endpointslices, nodes, pods, services") {
			t.Errorf("without rights the log has\n%s", lines)
		}
		granted.Store(true)
		time.Sleep(2 * time.Minute)
		r.want(`a/web=10.96.0.1; 0 nodes, self ""`)
		if lines := r.log.String(); strings.Count(lines, "\n") != 2 || !strings.Contains(lines, "watching the API server again") {
			t.Errorf("with rights the log has\n%s", lines)
		}
		_, err := r.client.Services("a").Create(r.t.Context(), service("api", "10.96.0.2"), metav1.CreateOptions{})
		r.ok(err)
		r.want(`a/api=10.96.0.2; a/web=10.96.0.1; 0 nodes, self ""`)
	})
}
