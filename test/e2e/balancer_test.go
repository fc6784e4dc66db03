package e2e_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/troupe-vpp/troupe/test/node"
	"github.com/troupe-vpp/troupe/test/stage"
)

// balancer gives Services of type LoadBalancer addresses, as a controller of a cloud does. Routes
// of the machine outside lead from there to nodes, as routers do that learn addresses by BGP: each
// connection to another node, or with affinity all of them to the same one.
type balancer struct {
	c       *stage.Cluster
	outside *node.Node
	client  *http.Client // of health checks
	given   int          // number of addresses so far
	routes  map[string]string
}

// balance works until the context ends.
func balance(ctx context.Context, c *stage.Cluster, outside *node.Node) {
	b := &balancer{c: c, outside: outside, client: outside.Client(), routes: map[string]string{}}
	b.client.Timeout = time.Second
	for tick := time.NewTicker(500 * time.Millisecond); ctx.Err() == nil; {
		b.look(ctx)
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}
}

// look compares all Services with their addresses and routes. The next look repairs failures.
func (b *balancer) look(ctx context.Context) {
	services, err := b.c.Admin.CoreV1().Services("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return
	}
	for _, s := range services.Items {
		balanced := s.Spec.Type == corev1.ServiceTypeLoadBalancer && s.Spec.LoadBalancerClass == nil
		if has := len(s.Status.LoadBalancer.Ingress) > 0; has != balanced {
			s.Status.LoadBalancer.Ingress = nil
			if balanced {
				b.given++
				s.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: fmt.Sprintf("198.51.100.%d", b.given)}}
			}
			if _, err := b.c.Admin.CoreV1().Services(s.Namespace).UpdateStatus(ctx, &s, metav1.UpdateOptions{}); err != nil {
				continue
			}
		}
		if balanced {
			b.route(s.Status.LoadBalancer.Ingress[0].IP, b.hops(&s))
		}
	}
}

// hops are the uplinks of nodes, with the policy Local those of nodes that are healthy.
func (b *balancer) hops(s *corev1.Service) (hops []string) {
	for i, n := range b.c.Nodes {
		if s.Spec.ExternalTrafficPolicy == corev1.ServiceExternalTrafficPolicyLocal {
			answer, err := b.client.Get(fmt.Sprintf("http://%s:%d/healthz", n.Address, s.Spec.HealthCheckNodePort))
			if err != nil {
				continue
			}
			_ = answer.Body.Close()
			if answer.StatusCode != http.StatusOK {
				continue
			}
		}
		hops = append(hops, "nexthop", "via", stage.Uplinks(i)[0].Addr().String())
	}
	if s.Spec.SessionAffinity == corev1.ServiceAffinityClientIP && len(hops) > 0 {
		return hops[:3]
	}
	return hops
}

// route leads an address to hops, or nowhere.
func (b *balancer) route(address string, hops []string) {
	to := slices.Concat([]string{address}, hops)
	if len(hops) == 0 {
		to = []string{"blackhole", address}
	}
	want := strings.Join(to, " ")
	if b.routes[address] == want {
		return
	}
	if _, err := b.outside.Try(slices.Concat([]string{"ip", "route", "replace"}, to)...); err == nil {
		b.routes[address] = want
	}
}
