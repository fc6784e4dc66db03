package agent_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/troupe-vpp/troupe/test/controlplane"
)

// TestRights: the agents need each verb of deploy/kubernetes/base/rbac.yaml and no other. With all
// of them nothing is refused, and each is used. Without one of them the API server refuses that
// request, and no other; the agent says which, and goes on when it is granted. The API server
// streams no lists, as older ones: with those that do, the agent does without the verb list.
func TestRights(t *testing.T) {
	w := newTown(t, "kubernetes")
	w.StopAPI()
	w.StartAPI("--feature-gates=WatchList=false")
	w.join(1)
	w.join(2)
	w.agree()
	w.join(3)
	w.agree()
	w.leave("n3")
	rights := controlplane.RightsOf(w.Plane, namespace, account)
	controlplane.Eventually(t, "use of all rights", func() string {
		allowed, refused := w.Requests()
		if len(refused) > 0 {
			t.Fatalf("refused: %v", refused)
		}
		for _, r := range rights.All() {
			if allowed[r] == 0 {
				return fmt.Sprintf("no request to %s %s: %v", r.Verb, r.Resource, allowed)
			}
		}
		return ""
	})
	leases := func(verb string) controlplane.Request {
		return controlplane.Request{Verb: verb, Resource: "leases.coordination.k8s.io"}
	}
	life := map[controlplane.Request]func(){ // what makes the agents use the right
		leases("create"): func() { w.join(3) },
		leases("delete"): func() { w.leave("n3") },
		leases("patch"):  func() { w.join(4) },
	}
	for _, right := range rights.All() { // in the order of the file: n3 joins before it leaves
		use := life[right]
		if use == nil {
			use = func() { w.restart("n2") }
		}
		t.Logf("without %s %s", right.Verb, right.Resource)
		w.without(rights, right, use)
	}
}

// without takes one right from the agents while they use it.
func (w *town) without(rights *controlplane.Rights, right controlplane.Request, use func()) {
	w.Helper()
	rights.Set(right, false)
	_, before := w.Requests()
	said := map[string]int{}
	for name, n := range w.nodes {
		said[name] = len(n.agent.Output())
	}
	use()
	resource, _, _ := strings.Cut(right.Resource, ".")
	controlplane.Eventually(w, "refusal", func() string {
		_, refused := w.Requests()
		for r, times := range refused {
			if times > before[r] && r != right {
				w.Fatalf("refused: %v", r)
			}
		}
		if refused[right] == before[right] {
			return "nothing is refused"
		}
		for name, n := range w.nodes {
			for line := range strings.Lines(n.agent.Output()[said[name]:]) {
				if strings.Contains(line, "forbidden") && strings.Contains(line, resource) {
					return ""
				}
			}
		}
		return "no agent says that " + resource + " is forbidden"
	})
	rights.Set(right, true)
	w.agree()
	for _, n := range w.nodes {
		n.ready()
	}
}

// restart kills the agent of a node and starts it again.
func (w *town) restart(name string) {
	w.nodes[name].agent.Kill()
	w.nodes[name].start()
}

// leave lets a node go for ever.
func (w *town) leave(name string) {
	w.Helper()
	w.nodes[name].agent.Kill()
	delete(w.nodes, name)
	w.unregister(name)
}
