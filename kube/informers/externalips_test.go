package informers

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
)

// TestExternalIPsFollowTheVersion: external IPs are served up to 1.39, with one warning from 1.36
// on. From 1.40 on they are left out, with a problem in the service.
func TestExternalIPsFollowTheVersion(t *testing.T) {
	forbidden := apierrors.NewForbidden(schema.GroupResource{}, "", errors.New("no"))
	for name, tt := range map[string]struct {
		info    version.Info
		err     error
		served  bool
		warning string
	}{
		"1.35":            {version.Info{Major: "1", Minor: "35"}, nil, true, ""},
		"1.36":            {version.Info{Major: "1", Minor: "36"}, nil, true, "deprecated since Kubernetes 1.36"},
		"1.39 of a cloud": {version.Info{Major: "1", Minor: "39+"}, nil, true, "deprecated since Kubernetes 1.36"},
		"1.40":            {version.Info{Major: "1", Minor: "40"}, nil, false, ""},
		"a secret":        {version.Info{}, forbidden, true, "version of the API server is not known"},
		"no number":       {version.Info{Major: "1", Minor: "x"}, nil, true, "version of the API server is not known"},
	} {
		t.Run(name, func(t *testing.T) {
			asked := 0
			prepare := func(r *running) {
				r.source.watched[0].follow(&externalIPs{log: r.source.log, version: func(context.Context) (*version.Info, error) {
					if asked++; asked == 1 {
						return nil, errors.New("connection refused")
					}
					return &tt.info, tt.err
				}})
			}
			with := func(name, ip string) *corev1.Service {
				s := service(name, ip)
				s.Spec.ExternalIPs = []string{"203.0.113.1"}
				return s
			}
			run(t, []runtime.Object{with("a", "10.96.0.1"), service("b", "10.96.0.2")}, prepare, func(r *running) {
				time.Sleep(mostPause)
				r.settle()
				_, err := r.client.Services("a").Create(r.t.Context(), with("c", "10.96.0.3"), metav1.CreateOptions{})
				r.ok(err)
				services := r.settle().Services
				for _, key := range []string{"a/a", "a/c"} {
					s := services[key]
					if served := len(s.GetService().GetExternalIps()) == 1; served != tt.served || (len(s.GetErrors()) == 1) == tt.served {
						t.Errorf("%s: served %t, problems %v", key, served, s.GetErrors())
					}
				}
				// the first answer
				log := strings.ReplaceAll(r.log.String(), `level=WARN msg="not watching the API server"`, "")
				if asked != 2 || strings.Count(log, "level=WARN") != min(1, len(tt.warning)) || !strings.Contains(log, tt.warning) {
					t.Errorf("asked %d times, log:\n%s", asked, log)
				}
			})
		})
	}
}
