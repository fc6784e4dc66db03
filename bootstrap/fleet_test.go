package bootstrap

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/troupe-vpp/troupe/bootstrap/api"
	"github.com/troupe-vpp/troupe/bootstrap/api/apitest"
	"github.com/troupe-vpp/troupe/bootstrap/cli"
	"github.com/troupe-vpp/troupe/kube/kubetest"
)

// apiServer is an API server that lists the pods of agents and forwards their ports.
type apiServer struct {
	pods    []corev1.Pod
	agents  map[string]string // addresses by pod
	version string
	// KubeProxy is the DaemonSet of kube-proxy in JSON; "" = the user may not read it.
	kubeProxy string
	// Kubeconfig is the path of a file that leads to it.
	kubeconfig string
}

// newAPIServer starts an API server without agents.
func newAPIServer(t *testing.T) *apiServer {
	t.Helper()
	s := &apiServer{agents: map[string]string{}, version: "v1.33.1"}
	const pods = "/api/v1/namespaces/troupe-system/pods"
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+pods, func(w http.ResponseWriter, r *http.Request) {
		list := corev1.PodList{}
		for _, p := range s.pods {
			if selected := r.URL.Query().Get("fieldSelector"); selected == "" || selected == "spec.nodeName="+p.Spec.NodeName {
				list.Items = append(list.Items, p)
			}
		}
		_ = json.NewEncoder(w).Encode(list)
	})
	mux.HandleFunc("POST "+pods+"/{pod}/portforward", func(w http.ResponseWriter, r *http.Request) {
		kubetest.Forward(w, r, s.agents[r.PathValue("pod")])
	})
	mux.HandleFunc("GET /version", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintf(w, `{"gitVersion":%q}`, s.version) })
	for path, kind := range map[string]string{
		"/api/v1/services": "v1 ServiceList", "/api/v1/pods": "v1 PodList", "/apis/networking.k8s.io/v1/servicecidrs": "networking.k8s.io/v1 ServiceCIDRList",
	} {
		version, name, _ := strings.Cut(kind, " ")
		mux.HandleFunc("GET "+path, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, `{"kind":%q,"apiVersion":%q,"items":[]}`, name, version)
		})
	}
	mux.HandleFunc("GET /api/v1/nodes", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"kind":"NodeList","apiVersion":"v1","items":[` +
			`{"metadata":{"name":"n1"},"spec":{"podCIDRs":["10.1.1.0/24"]}},{"metadata":{"name":"n2"},"spec":{"podCIDRs":["10.9.2.0/24"]}}]}`))
	})
	forbidden := func(w http.ResponseWriter, what string) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusForbidden)
		fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,"message":"%s is forbidden"}`, what)
	}
	mux.HandleFunc("GET /apis/discovery.k8s.io/v1/endpointslices", func(w http.ResponseWriter, _ *http.Request) { forbidden(w, "endpointslices") })
	mux.HandleFunc("GET /apis/apps/v1/namespaces/kube-system/daemonsets/kube-proxy", func(w http.ResponseWriter, _ *http.Request) {
		if s.kubeProxy == "" {
			forbidden(w, "daemonsets")
			return
		}
		_, _ = w.Write([]byte(s.kubeProxy))
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	s.kubeconfig = write(t, t.TempDir(), "kubeconfig", fmt.Sprintf(`apiVersion: v1
kind: Config
current-context: c
contexts: [{name: c, context: {cluster: c}}]
clusters: [{name: c, cluster: {server: %s}}]
`, server.URL))
	return s
}

// add adds the pod of a node in a phase, with an agent at an address.
func (s *apiServer) add(node string, phase corev1.PodPhase, agent string) {
	s.pods = append(s.pods, corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "agent-" + node}, Spec: corev1.PodSpec{NodeName: node}, Status: corev1.PodStatus{Phase: phase},
	})
	s.agents["agent-"+node] = agent
}

// noListener is an address at which nothing listens.
const noListener = "127.0.0.1:1"

// answering returns the address of a server in the place of an agent.
func answering(t *testing.T, handler http.HandlerFunc) string {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server.Listener.Addr().String()
}

// newFleetOf starts three agents and two nodes that do not answer.
func newFleetOf(t *testing.T) *apiServer {
	t.Helper()
	s := newAPIServer(t)
	for _, node := range []string{"n1", "n2", "n3"} {
		backend := apitest.New(2)
		backend.Hooks.Node, backend.Hooks.Uplink = node, "uplink0"
		if node == "n3" {
			backend.Hooks.Version = "v1.2.2"
		}
		if node == "n2" {
			backend.Break(nil, api.Readiness{Since: apitest.Began, Parts: []api.Part{{Name: "cnat", Reason: "no connection to VPP"}, {Name: "link", Reason: "read from VPP: EOF"}}})
		}
		s.add(node, corev1.PodRunning, apitest.Start(t, backend, nil).Address)
	}
	s.add("n4", corev1.PodPending, "")
	s.add("n5", corev1.PodRunning, noListener)
	return s
}

// TestPageOfAllNodes: the page has the lines of the command, and answers only this machine.
func TestPageOfAllNodes(t *testing.T) {
	s := newFleetOf(t)
	address := serving(t, `all nodes: http://(\S+)/`, "status", "--all-nodes", "--serve", "127.0.0.1:0", "--kubeconfig", s.kubeconfig)
	text, status, err := cli.NewClient(address).Text(t.Context(), "")
	if err != nil || status != http.StatusOK {
		t.Fatal(status, err)
	}
	for _, want := range []string{
		`<td>n4<td class="state bad">unknown<td>`, "<td>pod agent-n4 is Pending</tr>", `<td>n3<td class="state good">yes<td>v1.2.2<td>`, "<td>differs: version v1.2.2</tr>",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+"/", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	request.Host = "rebound.example.com"
	if answer, err := http.DefaultClient.Do(request); err != nil || answer.StatusCode != http.StatusForbidden {
		t.Errorf("a name that leads here: %v %v", answer, err)
	} else {
		_ = answer.Body.Close()
	}
	for _, args := range []string{"--all-nodes --serve 0.0.0.0:80", "--all-nodes --serve 80", "--serve 127.0.0.1:0"} {
		if r := troupe("", append([]string{"status", "--kubeconfig", s.kubeconfig}, strings.Fields(args)...)...); r.code != exitUsage {
			t.Errorf("%s: exit code %d: %s", args, r.code, r.errs)
		}
	}
}

// silent takes requests and answers none until the client gives up.
var silent = http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })

// TestStatusOfASilentNode: a node that does not answer takes the time limit, and does not keep the
// lines of the others. Others that miss a short limit on a busy machine get a longer one.
func TestStatusOfASilentNode(t *testing.T) {
	s := newFleetOf(t)
	s.add("n6", corev1.PodRunning, answering(t, silent))
	var r result
	for limit := 300 * time.Millisecond; limit < time.Minute; limit *= 2 {
		r = troupe("", "status", "--all-nodes", "--kubeconfig", s.kubeconfig, "--timeout", limit.String())
		if r.out != "" && strings.Count(r.out, "no answer in time") < 2 {
			break
		}
	}
	out := squeeze(r.out)
	for _, want := range []string{
		"\nn6 unknown - - - - - - - no answer in time", "\nn4 unknown - - - - - - - pod agent-n4 is Pending", "\nn5 unknown - - - - - - - ask the agent at node n5: nothing listens on port 9990",
		"\nn2 no v1.2.3 ", "\nn3 yes v1.2.2 ", "\nn1 yes v1.2.3 ",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("no line %q in\n%s", want, out)
		}
	}
	if r.code != exitFailed || r.errs != "troupe: 4 of 6 nodes are not ready or have not answered\n" {
		t.Errorf("exit code %d: %s", r.code, r.errs)
	}
}

// TestStatusOfAllNodes: one line for each node, the worst first, and how one differs from the
// others.
func TestStatusOfAllNodes(t *testing.T) {
	s := newFleetOf(t)
	r := troupe("", "status", "--all-nodes", "--kubeconfig", s.kubeconfig)
	lines := strings.Split(squeeze(r.out), "\n")
	want := []string{
		"NODE READY VERSION VPP SERVED OTHERS DRAINING SESSIONS CHANGED WHY",
		"n4 unknown - - - - - - - pod agent-n4 is Pending",
		"n5 unknown - - - - - - - ask the agent at node n5: nothing listens on port 9990 of the node's loopback: its agent does not run, or api.httpAddress has another port than --address",
		"n2 no v1.2.3 25.10-release 2 - 2 7 ", "n3 yes v1.2.2 25.10-release 2 - 2 7 ", "n1 yes v1.2.3 25.10-release 2 - 2 7 ",
	}
	if r.code != exitFailed || len(lines) != len(want) {
		t.Fatalf("exit code %d: %s%s", r.code, r.out, r.errs)
	}
	for i := range want {
		if !strings.HasPrefix(lines[i], want[i]) {
			t.Errorf("%s\nwant %s", lines[i], want[i])
		}
	}
	if !strings.HasSuffix(lines[3], " link: read from VPP: EOF") || !strings.HasSuffix(lines[4], " differs: version v1.2.2") {
		t.Errorf("%s\n%s", lines[3], lines[4])
	}
	if r.errs != "troupe: 3 of 5 nodes are not ready or have not answered\n" {
		t.Error(r.errs)
	}
	if r := troupe("", "status", "--node", "n1", "--kubeconfig", s.kubeconfig, "-o", "json"); r.code != 0 || !strings.Contains(r.out, `"node": "n1"`) {
		t.Errorf("exit code %d: %s%s", r.code, r.out, r.errs)
	}
	// a single question says so, too
	if r := troupe("", "get", "services", "--node", "n5", "--kubeconfig", s.kubeconfig); !strings.Contains(r.errs, "nothing listens on port 9990 of the node's loopback") {
		t.Error(r.errs)
	}
}

// TestWarningsOfANode: the warning of a part that is OK is in the line of its node, and check names
// it.
func TestWarningsOfANode(t *testing.T) {
	s := newAPIServer(t)
	backend := apitest.New(2)
	backend.Hooks.Node = "n1"
	backend.Break(nil, api.Readiness{Ready: true, Parts: []api.Part{
		{Name: "interfaces", OK: true, Reason: "VPP has no interface for 1 addresses"}, {Name: "pod-networks", OK: true, Reason: "[10.1.0.0/16]"},
	}})
	s.add("n1", corev1.PodRunning, apitest.Start(t, backend, nil).Address)
	if r := troupe("", "status", "--all-nodes", "--kubeconfig", s.kubeconfig); r.code != 0 || !strings.HasSuffix(squeeze(r.out), " ago interfaces: VPP has no interface for 1 addresses") {
		t.Errorf("exit code %d: %s%s", r.code, r.out, r.errs)
	}
	r := troupe("", "check", "--all-nodes", "--kubeconfig", s.kubeconfig, "--vpp-api-socket", filepath.Join(t.TempDir(), "none"))
	if want := "agent of node n1 warning ready; interfaces: VPP has no interface for 1 addresses docs/operations.md"; !strings.Contains(squeeze(r.out), want) {
		t.Errorf("no line %q: %s%s", want, r.out, r.errs)
	}
}

// TestHostileNode: what answers on one node => its own line has the reason, the other node has its
// own line, and nobody else gets a request.
func TestHostileNode(t *testing.T) {
	thief := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { t.Errorf("the thief got %s", r.URL) }))
	defer thief.Close()
	for why, answer := range map[string]http.HandlerFunc{
		`it has the name "shop-a"`:   func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"node":"shop-a","ready":true}`) },
		`it has the name "../../n1"`: func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"node":"../../n1","ready":true}`) },
		"redirects elsewhere":        func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, thief.URL, http.StatusFound) },
		"above the limit of size":    func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, strings.Repeat(" ", 2<<20)) },
	} {
		s := newAPIServer(t)
		s.add("shop-a", corev1.PodRunning, apitest.Start(t, apitest.New(1), nil).Address)
		s.add("evil", corev1.PodRunning, answering(t, answer))
		r := troupe("", "status", "--all-nodes", "--kubeconfig", s.kubeconfig)
		lines := strings.Split(squeeze(r.out), "\n")
		if len(lines) != 3 || !strings.HasPrefix(lines[1], "evil unknown ") || !strings.Contains(lines[1], why) || !strings.HasPrefix(lines[2], "shop-a yes ") {
			t.Errorf("%s: %s%s", why, r.out, r.errs)
		}
		file := filepath.Join(t.TempDir(), "dump.tar.gz")
		r = troupe("", "sysdump", "--kubeconfig", s.kubeconfig, "--file", file)
		if r.code != 0 || !strings.Contains(r.out, "node evil: ") || !strings.Contains(r.out, why) {
			t.Errorf("%s: %s%s", why, r.out, r.errs)
		}
		if r = troupe("", "look", file, "get", "services"); r.code != 0 || !strings.Contains(r.out, "shop/service-000") {
			t.Errorf("%s: %s%s", why, r.out, r.errs)
		}
	}
}
