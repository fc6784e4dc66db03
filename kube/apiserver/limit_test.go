package apiserver

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
)

// TestOneRateLimit: the requests of all API groups share one rate limit.
func TestOneRateLimit(t *testing.T) {
	groups, err := newGroups(&rest.Config{Host: "https://192.0.2.1", QPS: 5, Burst: 10})
	if err != nil {
		t.Fatal(err)
	}
	limit := groups[corev1.SchemeGroupVersion].GetRateLimiter()
	for group, client := range groups {
		if got := client.GetRateLimiter(); got == nil || got != limit || got.QPS() != 5 {
			t.Errorf("%s has the limit %v, want %v", group, got, limit)
		}
	}
	if len(groups) != 6 {
		t.Errorf("%d groups", len(groups))
	}
}
