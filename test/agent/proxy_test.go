package agent_test

import (
	"net"
	"os/exec"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/troupe-vpp/troupe/test/controlplane"
)

// ownAddress is an address of this machine that the API server's proxy connects to: it refuses
// loopback.
func ownAddress(t *testing.T) string {
	t.Helper()
	all, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range all {
		if network, ok := a.(*net.IPNet); ok && network.IP.IsGlobalUnicast() && network.IP.To4() != nil {
			return network.IP.String()
		}
	}
	t.Skip("this machine has no IPv4 address besides loopback")
	return ""
}

// TestNodeThroughTheAPIServer: --node asks the agent of a node through the API server with the
// rights of the user, and only with them; nothing can be changed that way.
func TestNodeThroughTheAPIServer(t *testing.T) {
	n, address := prepare(t), ownAddress(t)
	listener, err := net.Listen("tcp", address+":0")
	if err != nil {
		t.Fatal(err)
	}
	at := listener.Addr().String()
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	n.launchAt(troupe, at)
	n.ready()
	n.Namespace("shop")
	n.service("shop", "web")
	n.agentPod("agent-1", thisNode, address)
	looker := n.user("looker", rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"list"}},
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods/proxy"}, Verbs: []string{"get"}})
	lister := n.user("lister", rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"list"}})
	ask := func(kubeconfig, node string, args ...string) (string, error) {
		out, err := exec.CommandContext(t.Context(), troupe, append(args, "--node", node, "--kubeconfig", kubeconfig, "--address", at)...).CombinedOutput()
		return string(out), err
	}
	controlplane.Eventually(t, "services through the API server", func() string {
		out, err := ask(looker, thisNode, "get", "services")
		if err != nil || !strings.Contains(out, "shop/web") {
			return out
		}
		return ""
	})
	for _, args := range [][]string{{"get", "nodes", "-o", "json"}, {"explain", "shop/web"}, {"actors", "show", "agent/world"}, {"trace", "--limit", "3"}} {
		if out, err := ask(looker, thisNode, args...); err != nil || out == "" {
			t.Errorf("%v: %v: %s", args, err, out)
		}
	}
	for _, tt := range []struct{ kubeconfig, node, want string }{
		{lister, thisNode, "forbidden"},
		{looker, "n2", "find the agent of node n2 in namespace troupe-system: no pod with the label app.kubernetes.io/name=troupe-agent runs there"},
		{n.user("nobody"), thisNode, "cannot list resource \"pods\""},
		{n.file("none"), thisNode, "read kubeconfig"},
	} {
		if out, err := ask(tt.kubeconfig, tt.node, "get", "services"); err == nil || !strings.Contains(out, tt.want) || strings.Count(out, "\n") != 1 {
			t.Errorf("%v: %s\nwant %s", err, out, tt.want)
		}
	}
	admin := n.Kubeconfig("admin", controlplane.Credentials)
	body, err := n.Admin.CoreV1().RESTClient().Post().AbsPath("/api/v1/namespaces/" + namespace + "/pods/agent-1:" + port(at) + "/proxy/api/v1/resync").Do(t.Context()).Raw()
	if err == nil || !strings.Contains(string(body), "read-only") {
		t.Errorf("a change through the proxy: %v: %s", err, body)
	}
	if out, err := ask(admin, thisNode, "get", "resync"); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

// port is that of "host:port".
func port(address string) string {
	_, port, _ := strings.Cut(address, ":")
	return port
}

// agentPod creates the pod of an agent, as the DaemonSet does.
func (n *node) agentPod(name, on, address string) {
	n.Helper()
	made, err := n.Admin.CoreV1().Pods(namespace).Create(n.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"app.kubernetes.io/name": "troupe-agent"}},
		Spec:       corev1.PodSpec{NodeName: on, HostNetwork: true, Containers: []corev1.Container{{Name: "agent", Image: "none"}}},
	}, metav1.CreateOptions{})
	if err != nil {
		n.Fatalf("create pod %s: %v", name, err)
	}
	made.Status = corev1.PodStatus{Phase: corev1.PodRunning, PodIP: address, PodIPs: []corev1.PodIP{{IP: address}}}
	n.status(made, corev1.ConditionTrue)
}

// user creates a service account with rights in the namespace of the agent, and returns a
// kubeconfig of it.
func (n *node) user(name string, rules ...rbacv1.PolicyRule) string {
	n.Helper()
	meta := metav1.ObjectMeta{Name: name, Namespace: namespace}
	_, err := n.Admin.CoreV1().ServiceAccounts(namespace).Create(n.Context(), &corev1.ServiceAccount{ObjectMeta: meta}, metav1.CreateOptions{})
	if err == nil {
		_, err = n.Admin.RbacV1().Roles(namespace).Create(n.Context(), &rbacv1.Role{ObjectMeta: meta, Rules: rules}, metav1.CreateOptions{})
	}
	if err == nil {
		_, err = n.Admin.RbacV1().RoleBindings(namespace).Create(n.Context(), &rbacv1.RoleBinding{
			ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: name, Namespace: namespace}},
		}, metav1.CreateOptions{})
	}
	if err != nil {
		n.Fatalf("create user %s: %v", name, err)
	}
	return n.Kubeconfig(name, "token: "+n.Token(namespace, name, name))
}
