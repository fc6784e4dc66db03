package agent_test

import (
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/troupe-vpp/troupe/test/controlplane"
)

// rows waits until VPP has so many rows.
func (n *node) rows(want int) {
	n.Helper()
	controlplane.Eventually(n, "number of rows", func() string {
		if _, have := n.counted(); have != want {
			return fmt.Sprintf("have %d, want %d", have, want)
		}
		return ""
	})
}

// served makes the service shop/web with one pod and returns its row. VPP has the row, and the
// roles of the pod's interface, which another actor sends.
func (n *node) served() string {
	n.Helper()
	n.Namespace("shop")
	r := row(n.service("shop", "web"), 80, "10.1.1.3:8080")
	n.pod("shop", "web", "a", thisNode, "10.1.1.3")
	n.want("shop/web", r)
	n.did("add roles inside+outside to interface 2")
	return r
}

// says waits until the log of the agent has a text.
func (n *node) says(text string) {
	n.Helper()
	controlplane.Eventually(n, "log", func() string {
		if strings.Contains(n.agent.Output(), text) {
			return ""
		}
		return fmt.Sprintf("the agent does not say %q: %s", text, n.get("/readyz?verbose", nil))
	})
}

// TestAway stops the API server: VPP gets nothing to do, neither meanwhile nor by its return; what
// is new afterwards is served. The node is ready until the limit of staleness, and says how old
// that is what it serves. The log has one line for the beginning and one for the end, besides
// readiness.
func TestAway(t *testing.T) {
	t.Parallel()
	n := stage(t)
	r := n.served()
	n.ready()
	mutating, rows := n.counted()
	n.says("NAT sessions are read") // the last line of the start
	said := len(n.agent.Output())
	n.StopAPI()
	n.says("connection refused")
	if age := n.staleSeconds(); age <= 0 {
		t.Errorf("the state is %g s old", age)
	}
	n.want("shop/web", r)
	controlplane.Eventually(t, "age in readiness", func() string {
		problem := n.get("/readyz?verbose", nil)
		switch aged := strings.Contains(problem, "(what is served is "); {
		case !aged && problem != "": // before the limit the answer is 200
			t.Fatalf("not ready, and no age: %s", problem)
		case strings.Contains(problem, "[-]watch failed: stale for more than 15s: the API server does not answer: ") && aged:
			return ""
		}
		return "within the limit: " + problem
	})
	n.StartAPI()
	n.ready()
	controlplane.Eventually(t, "end of the outage in the log", func() string {
		if log := n.agent.Output()[said:]; strings.Count(log, "watching the API server again") != 1 {
			return log
		}
		return ""
	})
	log := n.agent.Output()[said:]
	lines := strings.Split(strings.TrimSpace(log), "\n")
	for _, line := range lines {
		if strings.Contains(line, "://") {
			t.Errorf("the log has a URL: %s", line)
		}
	}
	// Readiness has its own lines; an API server that starts refuses much for a moment, which is
	// another reason.
	if others := len(lines) - strings.Count(log, "readiness changed"); others != 2 || strings.Count(log, "not watching the API server") != 1 {
		t.Errorf("the log has\n%s", log)
	}
	controlplane.Eventually(t, "state without age", func() string {
		// a watch that ends with the outage may begin once more
		if age := n.staleSeconds(); age != 0 {
			return fmt.Sprintf("the state is %g s old", age)
		}
		return ""
	})
	if after, now := n.counted(); after != mutating || now != rows {
		t.Errorf("VPP was changed %d times and has %d rows, before the outage %d and %d", after, now, mutating, rows)
	}
	ip := n.service("shop", "db")
	n.pod("shop", "db", "b", thisNode, "10.1.1.4")
	n.want("shop/db", row(ip, 80, "10.1.1.4:8080"))
	n.want("shop/web", r)
}

// TestCompacted lets the agent miss changes that etcd no longer has: its watches get 410 Gone, and
// it lists again.
func TestCompacted(t *testing.T) {
	n := stage(t)
	n.served()
	old, err := n.Admin.CoreV1().Services("shop").List(n.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	n.agent.Signal(syscall.SIGSTOP)
	n.StopAPI()
	n.StartAPI()
	n.drop("shop", "web")
	ip := n.service("shop", "db")
	n.pod("shop", "db", "b", thisNode, "10.1.1.4")
	now, err := n.Admin.CoreV1().Services("shop").List(n.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	n.Compact(now.ResourceVersion)
	n.StopAPI()
	n.StartAPI()
	if !n.gone(old.ResourceVersion) {
		t.Errorf("a watch from resource version %s does not get 410 Gone", old.ResourceVersion)
	}
	n.agent.Signal(syscall.SIGCONT)
	n.want("shop/web")
	n.want("shop/db", row(ip, 80, "10.1.1.4:8080"))
}

// gone reports whether a watch from the resource version gets 410 Gone.
func (n *node) gone(version string) bool {
	n.Helper()
	w, err := n.Admin.CoreV1().Services("").Watch(n.Context(), metav1.ListOptions{ResourceVersion: version})
	if err != nil {
		return apierrors.IsResourceExpired(err) || apierrors.IsGone(err)
	}
	defer w.Stop()
	event := <-w.ResultChan()
	return event.Type == watch.Error && apierrors.IsResourceExpired(apierrors.FromObject(event.Object))
}

// TestToken revokes the agent's token and gives it another one: the rows stay meanwhile, and the
// agent takes the new one without a restart.
func TestToken(t *testing.T) {
	n := stage(t)
	r := n.served()
	n.Revoke(namespace, "first")
	n.StopAPI() // ends the watches, which outlive their token
	n.StartAPI()
	n.says("Unauthorized")
	ip := n.service("shop", "db")
	n.pod("shop", "db", "b", thisNode, "10.1.1.4")
	n.want("shop/web", r)
	n.write(n.token, n.Token(namespace, account, "second"))
	n.want("shop/db", row(ip, 80, "10.1.1.4:8080"))
	n.want("shop/web", r)
}

// TestBackAtOnce measures how soon a new service is in VPP after the API server has been away for
// longer than the usual back-off.
func TestBackAtOnce(t *testing.T) {
	t.Parallel()
	n := stage(t)
	n.served()
	for i, away := range []time.Duration{20 * time.Second, 40 * time.Second} {
		n.StopAPI()
		time.Sleep(away)
		n.StartAPI()
		back := time.Now()
		r, err := n.arrive("shop", i) // the controllers have a back-off of their own
		if err != nil {
			t.Fatal(err)
		}
		n.want(fmt.Sprintf("shop/s%d", i), r)
		t.Logf("away for %s: in VPP %s after the API server answers", away, time.Since(back).Round(10*time.Millisecond))
	}
}

var staleMetric = regexp.MustCompile(`(?m)^troupe_source_stale_seconds (\S+)$`)

// staleSeconds is the metric.
func (n *node) staleSeconds() float64 {
	n.Helper()
	answer, err := n.client.Get("http://agent/metrics")
	if err != nil {
		n.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		n.Fatal(err)
	}
	found := staleMetric.FindSubmatch(text)
	if found == nil {
		n.Fatalf("no age in the metrics:\n%s", text)
	}
	age, err := strconv.ParseFloat(string(found[1]), 64)
	if err != nil {
		n.Fatal(err)
	}
	return age
}
