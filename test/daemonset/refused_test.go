package daemonset_test

import (
	"context"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/troupe-vpp/troupe/test/controlplane"
)

// state is the directory of the agent on the node, of which the next agent would serve.
const state = "/var/lib/troupe"

// withoutRights: an agent that may not read is not Ready, says so, is not restarted, and goes on by
// itself when it is granted.
func withoutRights(c *cluster) {
	bindings := c.Admin.RbacV1().ClusterRoleBindings()
	binding, err := bindings.Get(context.Background(), daemonSet, metav1.GetOptions{})
	if err != nil {
		c.Fatal(err)
	}
	if err := bindings.Delete(context.Background(), daemonSet, metav1.DeleteOptions{}); err != nil {
		c.Fatal(err)
	}
	c.Nodes[0].Do("sh", "-c", "rm -rf "+state+"/*")
	c.replace(0)
	c.unready(0, "forbidden")
	binding.ResourceVersion, binding.UID = "", ""
	if _, err := bindings.Create(context.Background(), binding, metav1.CreateOptions{}); err != nil {
		c.Fatal(err)
	}
	if pod := c.RolledOut()[0]; pod.Status.ContainerStatuses[0].RestartCount != 0 {
		c.Errorf("%s has been restarted", pod.Name)
	}
}

// unwritable: an agent whose state directory is read-only serves all the same.
func unwritable(c *cluster) {
	n := c.Nodes[0]
	n.Do("mount", "-t", "tmpfs", "-o", "ro", "tmpfs", state)
	c.replace(0)
	if pod := c.RolledOut()[0]; pod.Status.ContainerStatuses[0].RestartCount != 0 {
		c.Errorf("%s has been restarted", pod.Name)
	}
	c.logged(0, "read-only file system")
	c.rows("shop/web", both, c.mustRows("shop/web")...)
	n.Do("umount", state)
	c.replace(0)
}

// logged waits until the log of the agent of a node has the words.
func (c *cluster) logged(on int, words string) {
	c.Helper()
	controlplane.Eventually(c, "log of the agent of "+c.Nodes[on].Name, func() string {
		out, err := c.Nodes[on].Try("sh", "-c", "cat /var/log/pods/*/agent/*.log")
		if err != nil || !strings.Contains(out, words) {
			return fmt.Sprintf("%q is not in it: %s", words, out)
		}
		return ""
	})
}

// mustRows are the rows of a service on the second node, at least one.
func (c *cluster) mustRows(service string) []string {
	c.Helper()
	rows, problem := c.rowsOf(1, service)
	if problem != "" || len(rows) == 0 {
		c.Fatalf("rows of %s: %v, %s", service, rows, problem)
	}
	return rows
}

// socketRights: a socket of VPP that the agent may not use is said, and used as soon as it may.
func socketRights(c *cluster) {
	n := c.Nodes[0]
	n.Do("chown", "65534", "/run/vpp/api.sock")
	n.Do("chmod", "0700", "/run/vpp/api.sock")
	c.replace(0)
	c.unready(0, "permission denied", "/run/vpp/api.sock")
	n.Do("chown", "0", "/run/vpp/api.sock")
	if pod := c.RolledOut()[0]; pod.Status.ContainerStatuses[0].RestartCount != 0 {
		c.Errorf("%s has been restarted", pod.Name)
	}
	n.Do("chmod", "0775", "/run/vpp/api.sock")
}

// clusterIP: the address of the API server that Kubernetes gives to pods is a ClusterIP, which
// nothing serves before the agent does. The agent ends, and says why; an update to such a template
// stops at the first node.
func clusterIP(c *cluster) {
	c.Apply("base", "https://"+c.Address())
	before := c.RolledOut()
	for _, n := range c.Nodes {
		n.Do("sh", "-c", "rm -rf "+state+"/*")
	}
	c.Apply("base", "") // the address is that of the pod's environment then
	changed := c.replaced(before)
	c.logged(changed, "the address of the API server is a cluster IP (KUBERNETES_SERVICE_HOST=10.96.0.1)")
	other := 1 - changed
	if pod, problem := c.Pod(other); problem != "" || pod.UID != before[other].UID {
		c.Errorf("the agent of the other node was touched: %s", problem)
	}
	c.Apply("base", "https://"+c.Address())
	c.same(other, before[other], c.RolledOut()[other], 0)
}
