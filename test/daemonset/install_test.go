package daemonset_test

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/troupe-vpp/troupe/test/build"
	"github.com/troupe-vpp/troupe/test/controlplane"
	"github.com/troupe-vpp/troupe/test/node"
	"github.com/troupe-vpp/troupe/test/stage"
)

// shippedImage is the name of the image in deploy/kubernetes.
const shippedImage = "troupe.dev/troupe:latest"

// TestInstall installs, updates, cleans up and removes the agent as the documents say, by kustomize
// and by Helm, in a cluster like one of kubeadm beside kube-proxy.
func TestInstall(t *testing.T) {
	if missing := node.Missing(); missing != "" {
		t.Skip(missing)
	}
	c := bare(t, shippedImage)
	c.publish()
	for _, story := range []struct {
		name string
		play func(*cluster)
	}{{"Kustomize", kustomize}, {"Helm", chart}} {
		t.Run(story.name, func(t *testing.T) {
			own := *c
			own.T = t
			story.play(&own)
		})
	}
}

// publish makes what kubeadm makes: the address of the API server in kube-public/cluster-info.
func (c *cluster) publish() {
	c.Helper()
	kubeconfig := "{apiVersion: v1, kind: Config, clusters: [{name: '', cluster: {server: 'https://" + c.Address() + "'}}]}"
	controlplane.Eventually(c, "namespace kube-public", func() string {
		_, err := c.Admin.CoreV1().ConfigMaps("kube-public").Create(context.Background(), &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: "cluster-info"}, Data: map[string]string{"kubeconfig": kubeconfig},
		}, metav1.CreateOptions{})
		if err != nil {
			return err.Error()
		}
		return ""
	})
}

// settled waits until the DaemonSet of a namespace has one Ready pod of the latest template on each
// of these nodes and no other, and returns the pods by node.
func (c *cluster) settled(namespace string, on ...int) map[int]corev1.Pod {
	c.Helper()
	pods := map[int]corev1.Pod{}
	controlplane.Eventually(c, "DaemonSet of "+namespace+" rolled out", func() string {
		clear(pods)
		set, err := c.Admin.AppsV1().DaemonSets(namespace).Get(context.Background(), daemonSet, metav1.GetOptions{})
		if err != nil {
			return err.Error()
		}
		s, want := set.Status, int32(len(on))
		if s.ObservedGeneration != set.Generation || s.DesiredNumberScheduled != want || s.UpdatedNumberScheduled != want || s.NumberReady != want {
			return fmt.Sprintf("generation %d, status %+v; %s", set.Generation, s, c.Said())
		}
		list, err := c.Admin.CoreV1().Pods(namespace).List(context.Background(), metav1.ListOptions{})
		if err != nil {
			return err.Error()
		}
		for _, pod := range list.Items {
			i := slices.IndexFunc(c.Nodes, func(n *node.Node) bool { return n.Name == pod.Spec.NodeName })
			if !stage.Ready(&pod) || pod.DeletionTimestamp != nil || !slices.Contains(on, i) {
				return pod.Name + " of " + pod.Spec.NodeName + " is not Ready, stops, or should not be there"
			}
			pods[i] = pod
		}
		return ""
	})
	return pods
}

// label sets the label of nodes with VPP, or takes it away.
func (c *cluster) label(on int, value string) {
	c.Helper()
	patch := `{"metadata":{"labels":{"troupe.dev/vpp":` + value + `}}}`
	if _, err := c.Admin.CoreV1().Nodes().Patch(context.Background(), c.Nodes[on].Name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
		c.Fatal(err)
	}
}

// gone waits until no agent is on the nodes.
func (c *cluster) gone(namespace string) {
	c.Helper()
	controlplane.Eventually(c, "pods of "+namespace+" gone", func() string {
		list, err := c.Admin.CoreV1().Pods(namespace).List(context.Background(), metav1.ListOptions{})
		if err != nil || len(list.Items) > 0 {
			return fmt.Sprintf("%d pods, %v", len(list.Items), err)
		}
		return ""
	})
}

// left is what the clean-up on a node would remove.
func (c *cluster) left(on int) string {
	c.Helper()
	return c.Nodes[on].Do(c.Program, "cleanup", "--dry-run", "--data-dir", state)
}

// kustomize: nothing is edited; the manifests are those of the repository. The address of the API
// server is kept for a start without the ClusterIP. A node without VPP has no agent and does not
// hold an update up.
func kustomize(c *cluster) {
	manifests := filepath.Join(build.Root(), "deploy", "kubernetes")
	stop := []func(){c.Nodes[0].ServeClusterIP(), c.Nodes[1].ServeClusterIP()}
	c.ApplyAsItIs(filepath.Join(manifests, "base"))
	before := c.settled(namespace, 0, 1)
	c.logged(0, "https://"+c.Address())
	parts, err := c.Nodes[0].Client().Get("http://127.0.0.1:9990/readyz?verbose")
	if err != nil {
		c.Fatal(err)
	}
	defer parts.Body.Close()
	text := make([]byte, 1<<12)
	n, _ := parts.Body.Read(text)
	if !strings.Contains(string(text[:n]), "[+]pod-networks ok: [10.1.1.0/24 10.1.2.0/24]\n") {
		c.Errorf("readyz: %s", text[:n])
	}
	c.Logf("%s", text[:n])
	for _, stop := range stop {
		stop()
	}
	pod := before[0]
	if err := c.Admin.CoreV1().Pods(namespace).Delete(context.Background(), pod.Name, metav1.DeleteOptions{}); err != nil {
		c.Fatal(err)
	}
	c.settled(namespace, 0, 1)
	c.logged(0, "the address of the API server is that of an earlier start")

	taint(c, manifests)
	c.label(1, "null")
	before = c.settled(namespace, 0)
	c.vpp[1].Kill()
	c.change(func(d *appsv1.DaemonSet) { agentOf(d).Args = append(agentOf(d).Args, "--log-format=json") })
	if after := c.settled(namespace, 0); after[0].UID == before[0].UID {
		c.Error("the agent was not updated")
	}
	c.vpp[1] = simulated(c.T, c.Nodes[1], c.Program)
	c.label(1, `""`)
	c.settled(namespace, 0, 1)
	unreadyNodes(c)

	c.Namespace("shop")
	served := row(c.service("web"), c.runPod("web", "a", 0))
	c.rows("shop/web", both, served)
	cleaned(c, manifests, served)
	// here everything that the cluster has of the agent is deleted before the clean-up
	c.ApplyAsItIs(filepath.Join(manifests, "base"))
	c.settled(namespace, 0, 1)
	c.rows("shop/web", both, served)
	c.deleteAll(filepath.Join(manifests, "base"))
	c.gone(namespace)
	cleaned(c, manifests, served)
}

// cleaned cleans up both nodes, whose VPPs have this row, in the steps of "Uninstall" in
// docs/operations.md.
func cleaned(c *cluster, manifests, served string) {
	const clean = "VPP has nothing of the agent\n"
	frontend, _, _ := strings.Cut(served, " -> ")
	overlay := filepath.Join(manifests, "overlays", "cleanup")
	for i := range c.Nodes {
		if left := c.left(i); !strings.Contains(left, "delete row "+frontend+"\n") {
			c.Errorf("%s before the clean-up has no row %s: %s", c.Nodes[i].Name, frontend, left)
		}
	}
	c.ApplyAsItIs(overlay)
	c.settled(namespace, 0, 1)
	for i := range c.Nodes {
		if left := c.left(i); left != clean {
			c.Errorf("%s after the clean-up: %s", c.Nodes[i].Name, left)
		}
	}
	c.deleteAll(overlay)
}

// taint: with the component startup-taint the agent takes the taint from its node when it is ready,
// leaves others, and may do nothing else to a Node.
func taint(c *cluster, manifests string) {
	name := c.Nodes[1].Name
	patch := `{"spec":{"taints":[{"key":"other","effect":"PreferNoSchedule"},{"key":"troupe.dev/agent-not-ready","effect":"NoSchedule"},` +
		`{"key":"troupe.dev/agent-not-ready","effect":"PreferNoSchedule"}]}}`
	if _, err := c.Admin.CoreV1().Nodes().Patch(context.Background(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
		c.Fatal(err)
	}
	c.ApplyAsItIs(filepath.Join(manifests, "overlays", "startup-taint"))
	controlplane.Eventually(c, "the taint is removed", func() string {
		object, err := c.Admin.CoreV1().Nodes().Get(context.Background(), name, metav1.GetOptions{})
		if err != nil || len(object.Spec.Taints) != 1 || object.Spec.Taints[0].Key != "other" {
			return fmt.Sprintf("taints %v, %v", object.Spec.Taints, err)
		}
		return ""
	})
	own := c.AdminConfig()
	own.Impersonate = rest.ImpersonationConfig{
		UserName: "system:serviceaccount:" + namespace + ":" + daemonSet, Groups: []string{"system:serviceaccounts", "system:authenticated"},
		Extra: map[string][]string{"authentication.kubernetes.io/node-name": {name}},
	}
	agent, err := kubernetes.NewForConfig(own)
	if err != nil {
		c.Fatal(err)
	}
	for _, refused := range [][3]string{
		{c.Nodes[0].Name, `{"spec":{"taints":[]}}`, "its own Node only"},
		{name, `{"spec":{"taints":[]}}`, "only the taint troupe.dev/agent-not-ready"},
		{name, `{"metadata":{"finalizers":["mine.test/x"]}}`, "nothing of a Node except its taints"},
		{name, `{"spec":{"taints":[{"key":"mine","effect":"NoExecute"}]}}`, "may add no taint"},
		{name, `{"metadata":{"labels":{"mine":"1"}}}`, "nothing of a Node except its taints"},
		{name, `{"spec":{"unschedulable":true}}`, "nothing of a Node except its taints"},
	} {
		_, err := agent.CoreV1().Nodes().Patch(context.Background(), refused[0], types.MergePatchType, []byte(refused[1]), metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})
		if err == nil || !strings.Contains(err.Error(), refused[2]) {
			c.Errorf("%s of %s: %v, want %q", refused[1], refused[0], err, refused[2])
		}
	}
	c.settled(namespace, 0, 1)
}

// unreadyNodes: while no agent is ready, an update with the strategy OnDelete waits for the
// administrator, and RollingUpdate replaces all pods at once, whatever maxUnavailable is.
func unreadyNodes(c *cluster) {
	before := c.settled(namespace, 0, 1)
	for i := range c.Nodes {
		c.vpp[i].Kill()
	}
	c.change(func(d *appsv1.DaemonSet) {
		d.Spec.UpdateStrategy = appsv1.DaemonSetUpdateStrategy{Type: appsv1.OnDeleteDaemonSetStrategyType}
	})
	state := func() (updated int, names map[types.UID]bool) {
		list, err := c.Admin.CoreV1().Pods(namespace).List(context.Background(), metav1.ListOptions{})
		if err != nil {
			c.Fatal(err)
		}
		names = map[types.UID]bool{}
		for _, pod := range list.Items {
			if pod.Spec.Containers[0].Image == "troupe.test/troupe:broken" {
				updated++
			}
			names[pod.UID] = !stage.Ready(&pod)
		}
		return updated, names
	}
	controlplane.Eventually(c, "both agents unready", func() string {
		if _, names := state(); !names[before[0].UID] || !names[before[1].UID] {
			return "one is ready"
		}
		return ""
	})
	c.change(func(d *appsv1.DaemonSet) {
		agentOf(d).Image, agentOf(d).ImagePullPolicy = "troupe.test/troupe:broken", corev1.PullNever
	})
	controlplane.Eventually(c, "the broken image is seen", func() string {
		set, err := c.Admin.AppsV1().DaemonSets(namespace).Get(context.Background(), daemonSet, metav1.GetOptions{})
		if err != nil || set.Status.ObservedGeneration != set.Generation {
			return fmt.Sprint("not yet ", err)
		}
		return ""
	})
	if updated, names := state(); updated != 0 || !names[before[0].UID] || !names[before[1].UID] {
		c.Errorf("OnDelete has replaced %d pods", updated)
	}
	c.change(func(d *appsv1.DaemonSet) {
		d.Spec.UpdateStrategy = appsv1.DaemonSetUpdateStrategy{Type: appsv1.RollingUpdateDaemonSetStrategyType}
	})
	controlplane.Eventually(c, "RollingUpdate replaces both", func() string {
		if updated, _ := state(); updated != 2 {
			return fmt.Sprintf("%d pods have the broken image", updated)
		}
		return ""
	})
	for i := range c.Nodes {
		c.vpp[i] = simulated(c.T, c.Nodes[i], c.Program)
	}
	c.change(func(d *appsv1.DaemonSet) {
		agentOf(d).Image, agentOf(d).ImagePullPolicy = shippedImage, corev1.PullIfNotPresent
	})
	c.settled(namespace, 0, 1)
}

// anotherVersion builds an image of other code, which says that it is v9.9.9, and gives it to the
// nodes.
func (c *cluster) anotherVersion(name string) {
	c.Helper()
	dir := c.TempDir()
	for _, part := range []string{"actors", "bootstrap", "cluster", "deploy", "kube", "messages", "vpp"} {
		if err := os.CopyFS(filepath.Join(dir, part), os.DirFS(filepath.Join(build.Root(), part))); err != nil {
			c.Fatal(err)
		}
	}
	for _, file := range []string{"main.go", "go.mod", "go.sum", "bootstrap/api/status.go"} {
		text, err := os.ReadFile(filepath.Join(build.Root(), file))
		if err != nil {
			c.Fatal(err)
		}
		changed := strings.Replace(string(text), "= info.Main.Version", `= "v9.9.9"`, 1)
		if err := os.WriteFile(filepath.Join(dir, file), []byte(changed), 0o600); err != nil {
			c.Fatal(err)
		}
	}
	archive := filepath.Join(dir, "other.tar")
	if err := build.ImageOf(context.Background(), dir, archive, name); err != nil {
		c.Fatal(err)
	}
	for _, n := range c.Nodes {
		n.Ctr("images", "import", archive)
	}
}

// chart: helm install into a namespace of its own finds the address of the API server, upgrade
// brings other code and another configuration, rollback and rollout undo find the ConfigMap of the
// version before, and uninstall leaves a clean VPP.
func chart(c *cluster) {
	const namespace = "networking"
	c.anotherVersion("troupe.dev/troupe:next")
	client := stage.NewHelm(c.T, c.AdminConfig(), namespace)
	if _, err := client.Install(c.T, "config: {renderer: iptables}"); err == nil || !strings.Contains(err.Error(), "renderer") {
		c.Errorf("wrong values: %v", err)
	}
	released, err := client.Install(c.T, "")
	if err != nil {
		c.Fatal(err)
	}
	if !strings.Contains(released.Info.Notes, "https://"+c.Address()) {
		c.Errorf("notes: %s", released.Info.Notes)
	}
	c.Logf("%s", released.Info.Notes)
	version := func(want string) {
		c.Helper()
		for i, pod := range c.settled(namespace, 0, 1) {
			if out, err := c.exec(namespace, pod.Name, "troupe", "--version"); err != nil || strings.Contains(out, "v9.9.9") != (want == "next") {
				c.Errorf("version on %s: %q, %v, want %s", c.Nodes[i].Name, out, err, want)
			}
		}
	}
	version("first")
	if _, err := client.Upgrade(c.T, "{image: {tag: next}, args: [--log-format=json], config: {services: {masqueradeAll: true}}}"); err != nil {
		c.Fatal(err)
	}
	version("next")
	if err := client.Rollback(1); err != nil {
		c.Fatal(err)
	}
	version("first")
	if err := client.Rollback(2); err != nil {
		c.Fatal(err)
	}
	version("next")
	c.undo(namespace)
	version("first")

	if _, err := client.Upgrade(c.T, "cleanup: true"); err != nil {
		c.Fatal(err)
	}
	c.settled(namespace, 0, 1)
	for i := range c.Nodes {
		if left := c.left(i); left != "VPP has nothing of the agent\n" {
			c.Errorf("%s after the clean-up: %s", c.Nodes[i].Name, left)
		}
	}
	if err := client.Uninstall(); err != nil {
		c.Fatal(err)
	}
	c.gone(namespace)
	kept, err := c.Admin.CoreV1().ConfigMaps(namespace).List(context.Background(), metav1.ListOptions{LabelSelector: "app.kubernetes.io/name=troupe-agent"})
	if err != nil || len(kept.Items) != 2 {
		c.Errorf("%d ConfigMaps stay, want those of two configurations: %v", len(kept.Items), err)
	}
}

// undo is kubectl rollout undo: the template of the revision before.
func (c *cluster) undo(namespace string) {
	c.Helper()
	revisions, err := c.Admin.AppsV1().ControllerRevisions(namespace).List(context.Background(), metav1.ListOptions{})
	if err != nil {
		c.Fatal(err)
	}
	byNumber := map[int64][]byte{}
	for _, r := range revisions.Items {
		byNumber[r.Revision] = r.Data.Raw
	}
	numbers := slices.Sorted(maps.Keys(byNumber))
	if len(numbers) < 2 {
		c.Fatalf("revisions %v", numbers)
	}
	_, err = c.Admin.AppsV1().DaemonSets(namespace).Patch(context.Background(), daemonSet, types.StrategicMergePatchType, byNumber[numbers[len(numbers)-2]], metav1.PatchOptions{})
	if err != nil {
		c.Fatal(err)
	}
}
