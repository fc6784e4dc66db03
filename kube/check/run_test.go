package check

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/troupe-vpp/troupe/kube/apiserver"
)

// loopback is a network of this process, because the ports of the pods are fixed: two runs of the
// tests may meet on one machine.
var loopback = fmt.Sprintf("127.%d.", 1+os.Getpid()%254)

// cluster is an API server with kubelets that run pods at once. A pod has an address of the
// loopback network, and acts as `troupe packets` does with its arguments.
type cluster struct {
	t       *testing.T
	ctx     context.Context // of the pods
	mu      sync.Mutex
	created []string // kind and name, in order
	deleted []string
	left    []corev1.Namespace // of earlier runs
	pods    map[string]*corev1.Pod
	logs    map[string][]byte
	early   bool // the namespace has no service account yet
	broken  string
	pending bool        // pods are never started
	looked  atomic.Bool // at a pending pod
	running sync.WaitGroup
}

func newCluster(t *testing.T) (*cluster, *Options) {
	ctx, stop := context.WithCancel(t.Context())
	c := &cluster{t: t, ctx: ctx, pods: map[string]*corev1.Pod{}, logs: map[string][]byte{}, early: true}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /api/v1/namespaces", c.namespace)
	mux.HandleFunc("GET /api/v1/namespaces", func(w http.ResponseWriter, r *http.Request) {
		if got := r.URL.Query().Get("labelSelector"); got != "app.kubernetes.io/managed-by=troupe-check" {
			t.Errorf("namespaces with %q", got)
		}
		answer(w, http.StatusOK, &corev1.NamespaceList{TypeMeta: metav1.TypeMeta{Kind: "NamespaceList", APIVersion: "v1"}, Items: c.left})
	})
	mux.HandleFunc("DELETE /api/v1/namespaces/{name}", func(w http.ResponseWriter, r *http.Request) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.deleted = append(c.deleted, r.PathValue("name"))
		answer(w, http.StatusOK, &metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: "Success"})
	})
	mux.HandleFunc("POST /api/v1/namespaces/troupe-check-1/services", func(w http.ResponseWriter, r *http.Request) {
		s := &corev1.Service{}
		c.decode(r, s)
		c.note("service " + s.Name)
		s.Spec.ClusterIPs, s.Spec.Ports[0].NodePort = []string{loopback + "7.1"}, 30001
		answer(w, http.StatusCreated, s)
	})
	mux.HandleFunc("GET /api/v1/nodes/{node}", func(w http.ResponseWriter, r *http.Request) {
		n := &corev1.Node{}
		n.Status.Addresses = []corev1.NodeAddress{
			{Type: corev1.NodeHostName, Address: "x"}, {Type: corev1.NodeInternalIP, Address: loopback + "9.9"}, {Type: corev1.NodeInternalIP, Address: "fd00::1"},
		}
		answer(w, http.StatusOK, n)
	})
	mux.HandleFunc("POST /api/v1/namespaces/troupe-check-1/pods", c.pod)
	mux.HandleFunc("GET /api/v1/namespaces/troupe-check-1/pods/{pod}", func(w http.ResponseWriter, r *http.Request) {
		c.mu.Lock()
		defer c.mu.Unlock()
		answer(w, http.StatusOK, c.pods[r.PathValue("pod")])
		c.looked.Store(c.pending)
	})
	mux.HandleFunc("GET /api/v1/namespaces/troupe-check-1/pods/{pod}/log", func(w http.ResponseWriter, r *http.Request) {
		c.mu.Lock()
		defer c.mu.Unlock()
		_, _ = w.Write(c.logs[r.PathValue("pod")])
	})
	server := httptest.NewServer(mux)
	t.Cleanup(func() { stop(); c.running.Wait(); server.Close() })
	client, err := apiserver.New(&rest.Config{Host: server.URL, ContentConfig: rest.ContentConfig{ContentType: "application/json"}})
	if err != nil {
		t.Fatal(err)
	}
	c.serve(loopback+"7.1:80", "n2")
	return c, &Options{Core: client.Core(), Image: "troupe:1", Nodes: []string{"n1", "n2"}, Times: 3, NodePortsAt: func(addresses []string) []string {
		// of the families of the service
		if !slices.Equal(addresses, []string{loopback + "9.9"}) {
			t.Errorf("node ports at which of %q?", addresses)
		}
		return addresses
	}}
}

// serve answers at an address with the name of a node.
func (c *cluster) serve(address, node string) {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		c.t.Error(err)
		return
	}
	c.running.Go(func() {
		if err := Answer(c.ctx, listener, node); err != nil {
			c.t.Error(err)
		}
	})
}

// address is where the pod of a node answers.
func address(node string) string {
	return net.JoinHostPort(loopback+"8."+strings.TrimPrefix(node, "n"), strconv.Itoa(AnswerPort))
}

func (c *cluster) note(what string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.created = append(c.created, what)
}

func (c *cluster) decode(r *http.Request, into any) {
	if err := json.NewDecoder(r.Body).Decode(into); err != nil {
		c.t.Error(err)
	}
}

func answer(w http.ResponseWriter, code int, object any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(object)
}

func (c *cluster) namespace(w http.ResponseWriter, r *http.Request) {
	n := &corev1.Namespace{}
	c.decode(r, n)
	n.Name = n.GenerateName + "1"
	c.note("namespace " + n.Name)
	answer(w, http.StatusCreated, n)
}

// pod creates a pod, which runs at once. The first one of a namespace is refused.
func (c *cluster) pod(w http.ResponseWriter, r *http.Request) {
	p := &corev1.Pod{}
	c.decode(r, p)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.early {
		c.early = false
		answer(w, http.StatusForbidden, &metav1.Status{
			TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: "Failure", Reason: metav1.StatusReasonForbidden, Code: http.StatusForbidden,
			Message: `pods "` + p.Name + `" is forbidden: error looking up service account troupe-check-1/default: serviceaccount "default" not found`,
		})
		return
	}
	c.created = append(c.created, "pod "+p.Name)
	if limits := p.Spec.Containers[0].Resources.Limits; *p.Spec.ActiveDeadlineSeconds != 600 || limits.Memory().IsZero() || limits.Cpu().IsZero() {
		c.t.Errorf("pod %s has no limits: %v", p.Name, limits)
	}
	switch words := p.Spec.Containers[0].Args; {
	case c.pending:
		p.Status.Phase = corev1.PodPending
	case p.Name == c.broken:
		p.Status.Phase, p.Status.Message = corev1.PodFailed, "no such image"
	case words[1] == "answer":
		p.Status.Phase, p.Status.PodIPs = corev1.PodRunning, []corev1.PodIP{{IP: strings.Split(address(p.Spec.NodeName), ":")[0]}}
		c.serve(address(p.Spec.NodeName), words[2])
	case words[1] == "ask":
		p.Status.Phase = corev1.PodSucceeded
		times, _ := strconv.Atoi(words[2])
		c.logs[p.Name], _ = json.Marshal(Ask(c.ctx, words[3:], times, 100*time.Millisecond))
	}
	c.pods[p.Name] = p
	answer(w, http.StatusCreated, p)
}

// TestRun: each node asks every address; the namespace is gone afterwards.
func TestRun(t *testing.T) {
	c, options := newCluster(t)
	results, err := Run(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	var have []string
	for _, r := range results {
		line := fmt.Sprintf("%s -> %s %s: %v", r.From, r.Kind, r.Address, r.Answers)
		if r.Failed > 0 {
			line += fmt.Sprintf(", %d failed: %s", r.Failed, r.Error)
		}
		have = append(have, strings.ReplaceAll(line, loopback, "127.0."))
	}
	want := []string{
		"n1 -> pods 127.0.8.1:8080: map[n1:3]", "n1 -> pods 127.0.8.2:8080: map[n2:3]", "n1 -> cluster IPs 127.0.7.1:80: map[n2:3]",
		"n1 -> node ports 127.0.9.9:30001: map[], 3 failed: dial tcp 127.0.9.9:30001: connect: connection refused",
		"n1 -> node ports 127.0.9.9:30001: map[], 3 failed: dial tcp 127.0.9.9:30001: connect: connection refused",
		"n2 -> pods 127.0.8.1:8080: map[n1:3]", "n2 -> pods 127.0.8.2:8080: map[n2:3]", "n2 -> cluster IPs 127.0.7.1:80: map[n2:3]",
		"n2 -> node ports 127.0.9.9:30001: map[], 3 failed: dial tcp 127.0.9.9:30001: connect: connection refused",
		"n2 -> node ports 127.0.9.9:30001: map[], 3 failed: dial tcp 127.0.9.9:30001: connect: connection refused",
	}
	if !slices.Equal(have, want) {
		t.Errorf("results:\n%s\nwant:\n%s", strings.Join(have, "\n"), strings.Join(want, "\n"))
	}
	if want := []string{"namespace troupe-check-1", "service answer", "pod answer-n1", "pod answer-n2", "pod ask-n1", "pod ask-n2"}; !slices.Equal(c.created, want) {
		t.Errorf("created %q, want %q", c.created, want)
	}
	if !slices.Equal(c.deleted, []string{"troupe-check-1"}) {
		t.Errorf("deleted %q", c.deleted)
	}
}

// TestRunFails: the error names the step, and the namespace goes.
func TestRunFails(t *testing.T) {
	for name, one := range map[string]struct {
		broken string
		away   bool
		want   string
	}{
		"a pod":               {broken: "answer-n2", want: "pod answer-n2 on node n2 has failed: no such image"},
		"the asker":           {broken: "ask-n1", want: "pod ask-n1 on node n1 has failed: no such image"},
		"the user interrupts": {away: true, want: "wait for pod answer-n1: context canceled: it is Pending"},
	} {
		t.Run(name, func(t *testing.T) {
			c, options := newCluster(t)
			c.broken = one.broken
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if c.pending = one.away; one.away {
				// The connection becomes idle when the client has read the answer.
				ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{PutIdleConn: func(error) {
					if c.looked.Load() {
						cancel()
					}
				}})
			}
			if _, err := Run(ctx, options); err == nil || err.Error() != one.want {
				t.Errorf("error %v, want %s", err, one.want)
			}
			if !slices.Equal(c.deleted, []string{"troupe-check-1"}) {
				t.Errorf("deleted %q", c.deleted)
			}
		})
	}
}

// TestShortAnswers: an answer that ends early, or is something else, is a failure.
func TestShortAnswers(t *testing.T) {
	for content, want := range map[string]string{
		"n1\n" + strings.Repeat(".", 1400): "something else than the pod answers",
		"HTTP/1.1 400 Bad Request":         "something else than the pod answers",
	} {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		var serving sync.WaitGroup
		serving.Go(func() {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			_, _ = connection.Write([]byte(content))
			_ = connection.Close()
		})
		if node, err := askOnce(t.Context(), listener.Addr().String()); err == nil || err.Error() != want {
			t.Errorf("%.20q: %s, %v, want %q", content, node, err, want)
		}
		serving.Wait()
		_ = listener.Close()
	}
}

// TestSweep: a run deletes what a run that was killed has left, and no other namespace.
func TestSweep(t *testing.T) {
	c, options := newCluster(t)
	now := time.Now()
	old, running, foreign := namespaceObject(now.Add(-time.Hour)), namespaceObject(now), namespaceObject(now.Add(-time.Hour))
	old.Name, running.Name, foreign.Name = "old", "running", "foreign"
	foreign.Labels = nil
	odd, going := *old, *old
	odd.Name, odd.Annotations = "odd", map[string]string{deadline: "never"}
	going.Name, going.DeletionTimestamp = "going", &metav1.Time{Time: now}
	c.left = []corev1.Namespace{*old, *running, *foreign, odd, going}
	if _, err := Run(t.Context(), options); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(c.deleted, []string{"old", "troupe-check-1"}) {
		t.Errorf("deleted %q", c.deleted)
	}
}

// TestPeers: with many nodes each asks 30, and each is asked by 30, itself among them.
func TestPeers(t *testing.T) {
	for nodes, want := range map[int]int{1: 1, 2: 2, 30: 30, 100: 30} {
		r, targets := &run{Options: &Options{}}, map[string][]Target{everyNode: {{Kind: ClusterIPs, Address: "vip"}}}
		for i := range nodes {
			name := fmt.Sprintf("n%03d", i)
			r.Nodes = append(r.Nodes, name)
			targets[name] = []Target{{Kind: Pods, Address: name, Node: name}, {Kind: NodePorts, Address: name}}
		}
		asks := map[string]int{}
		for i, name := range r.Nodes {
			asked := r.targetsOf(i, targets)
			if len(asked) != 2*want+1 || !slices.Contains(asked, targets[name][0]) || !slices.Contains(asked, targets[everyNode][0]) {
				t.Errorf("%d nodes: %s asks %v", nodes, name, asked)
			}
			for _, a := range asked {
				asks[a.Kind+" "+a.Address]++
			}
		}
		for address, n := range asks {
			if n != want && address != ClusterIPs+" vip" {
				t.Errorf("%d nodes: %s is asked %d times, want %d", nodes, address, n, want)
			}
		}
	}
}
