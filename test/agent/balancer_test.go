package agent_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/troupe-vpp/troupe/test/controlplane"
)

// TestLoadBalancer: the API server is behind a TCP load balancer that accepts connections and
// closes them, or that is stopped with its connections open. The agent, which runs on, tells it
// within a minute (readiness, metric, log), goes on telling it, and is current 5 seconds after its
// return.
func TestLoadBalancer(t *testing.T) {
	t.Parallel()
	for name, away := range map[string]func(*wire, bool){"closes": (*wire).sever, "stopped": (*wire).stop} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := prepare(t)
			w := newWire(t, n.APIAddress())
			n.launchAt(troupe, "127.0.0.1:0", "--kube-api-server", "https://"+w.Addr().String())
			n.ready()
			r := n.served()
			mutating, rows := n.counted()
			away(w, true)
			begun := time.Now()
			controlplane.Eventually(t, "age in the metric", func() string {
				if time.Since(begun) > time.Minute {
					t.Fatal("not told within a minute")
				}
				if age := n.staleSeconds(); age == 0 {
					return "the age is 0"
				}
				return ""
			})
			t.Logf("told after %s", time.Since(begun).Round(time.Second))
			n.says("not watching the API server")
			told := time.Now()
			for last := 0.0; time.Since(told) < 150*time.Second; time.Sleep(time.Second) {
				// client-go repeats a request for up to 2 minutes
				age := n.staleSeconds()
				if age <= last {
					t.Fatalf("%s after it was told the age is %g s, was %g s", time.Since(told).Round(time.Second), age, last)
				}
				last = age
			}
			if problem := n.get("/readyz?verbose", nil); !strings.Contains(problem, "[-]watch failed: stale for more than 15s: the API server does not answer: ") {
				t.Errorf("readiness: %s", problem)
			}
			n.want("shop/web", r)
			if after, now := n.counted(); after != mutating || now != rows {
				t.Errorf("VPP was changed %d times and has %d rows, before the outage %d and %d", after, now, mutating, rows)
			}
			away(w, false)
			back := time.Now()
			fresh, err := n.arrive("shop", 0)
			if err != nil {
				t.Fatal(err)
			}
			n.want("shop/s0", fresh)
			n.ready()
			controlplane.Eventually(t, "state without age", func() string {
				if age := n.staleSeconds(); age != 0 {
					return fmt.Sprintf("the state is %g s old", age)
				}
				return ""
			})
			t.Logf("current %s after its return", time.Since(back).Round(10*time.Millisecond))
			if count := strings.Count(n.agent.Output(), "not watching the API server"); count != 1 {
				t.Errorf("the log has %d lines about the outage", count)
			}
			if took := time.Since(back); took > 5*time.Second {
				t.Errorf("current %s after its return", took)
			}
		})
	}
}
