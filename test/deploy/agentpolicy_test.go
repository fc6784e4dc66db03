package deploy

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/troupe-vpp/troupe/test/build"
	"github.com/troupe-vpp/troupe/test/controlplane"
	"github.com/troupe-vpp/troupe/test/stage"
)

// agentIn is a client with the account of an agent on a node, in some namespace.
func (c *cluster) agentIn(t *testing.T, account, node string) *kubernetes.Clientset {
	t.Helper()
	config := c.AdminConfig()
	config.Impersonate = rest.ImpersonationConfig{
		UserName: "system:serviceaccount:" + account, Groups: []string{"system:serviceaccounts", "system:authenticated", "system:masters"},
	}
	if node != "" {
		config.Impersonate.Extra = map[string][]string{"authentication.kubernetes.io/node-name": {node}}
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// lease is a Lease of the node store with a record.
func lease(name, record string) string {
	return fmt.Sprintf("{apiVersion: coordination.k8s.io/v1, kind: Lease, metadata: {name: %s, namespace: troupe-system, annotations: {troupe.dev/record: '%s'}}}", name, record)
}

// TestAgentPolicies: what an agent may write on an API server, whatever its roles are: the objects
// of its own node, in every namespace of the agent. Groups of the test have all rights.
func TestAgentPolicies(t *testing.T) {
	c := start(t)
	c.Namespace("troupe-system")
	for _, name := range []string{"n1", "n2"} {
		if err := c.create(t, object(t, "{apiVersion: v1, kind: Node, metadata: {name: "+name+"}, spec: {taints: [{key: quarantine, effect: NoSchedule}, {key: troupe.dev/agent-not-ready, effect: NoSchedule}, {key: troupe.dev/agent-not-ready, effect: NoExecute}]}}"), false); err != nil {
			t.Fatal(err)
		}
	}
	for _, o := range stage.RenderManifests(t, filepath.Join(build.Root(), "deploy", "kubernetes", "overlays", "startup-taint")) {
		if strings.HasPrefix(o.GetKind(), "ValidatingAdmissionPolicy") {
			if err := c.create(t, o, false); err != nil {
				t.Fatal(err)
			}
		}
	}
	for name, record := range map[string]string{"n2": `{"id":2,"name":"n2"}`, "troupe-id-2": `{"id":2,"name":"n2"}`, "gone": `{"id":3,"name":"gone"}`, "troupe-id-3": `{"id":3, "name": "gone"}`, "troupe-id-9": "odd"} {
		if err := c.create(t, object(t, lease(name, record)), false); err != nil {
			t.Fatal(err)
		}
	}
	own, elsewhere, unbound := c.agentIn(t, "troupe-system:troupe-agent", "n1"), c.agentIn(t, "networking:eu-troupe-agent", "n1"), c.agentIn(t, "troupe-system:troupe-agent", "")
	dry := []string{metav1.DryRunAll}
	create := func(by *kubernetes.Clientset, name, record string) error {
		o := object(t, lease(name, record))
		text, err := o.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		return by.CoordinationV1().RESTClient().Post().Namespace("troupe-system").Resource("leases").Param("dryRun", "All").Body(text).Do(t.Context()).Error()
	}
	annotate := func(by *kubernetes.Clientset, name, record string) error {
		_, err := by.CoordinationV1().Leases("troupe-system").Patch(t.Context(), name, types.MergePatchType,
			fmt.Appendf(nil, `{"metadata":{"annotations":{"troupe.dev/record":%q}}}`, record), metav1.PatchOptions{DryRun: dry})
		return err
	}
	remove := func(by *kubernetes.Clientset, name string) error {
		return by.CoordinationV1().Leases("troupe-system").Delete(t.Context(), name, metav1.DeleteOptions{DryRun: dry})
	}
	node := func(by *kubernetes.Clientset, name, patch string) error {
		_, err := by.CoreV1().Nodes().Patch(t.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{DryRun: dry})
		return err
	}
	const taint, quarantine = `{"key":"troupe.dev/agent-not-ready","effect":"NoSchedule"}`, `{"key":"quarantine","effect":"NoSchedule"}`
	cases := map[string]struct {
		write   func() error
		refused string // "" = admitted
	}{
		"its own Lease":                  {func() error { return create(own, "n1", `{"id":1, "name":"n1"}`) }, ""},
		"its own ID":                     {func() error { return create(own, "troupe-id-1", `{"id":1,"name": "n1"}`) }, ""},
		"the Lease of another node":      {func() error { return create(own, "n3", `{"id":1,"name":"n1"}`) }, "its own node only"},
		"its own Lease, another record":  {func() error { return create(own, "n1", `{"id":1,"name":"n2"}`) }, "may record its own node only"},
		"an ID for another node":         {func() error { return create(own, "troupe-id-1", `{"id":1,"name":"n2"}`) }, "may record its own node only"},
		"an ID without a record":         {func() error { return create(own, "troupe-id-1", "") }, "may record its own node only"},
		"an escaped name":                {func() error { return create(own, "troupe-id-1", `{"id":1,"n\u0061me":"n2","x":"\"name\":\"n1\""}`) }, "may record its own node only"},
		"a nested name":                  {func() error { return create(own, "troupe-id-1", `{"id":1,"x":{"name":"n1"}}`) }, "may record its own node only"},
		"the addresses of another node":  {func() error { return annotate(own, "n2", `{"id":2,"name":"n2"}`) }, "its own node only"},
		"the ID of another node":         {func() error { return annotate(own, "troupe-id-2", `{"id":2,"name":"n1"}`) }, "belongs to another node"},
		"an ID that cannot be read":      {func() error { return annotate(own, "troupe-id-9", `{"id":9,"name":"n1"}`) }, ""},
		"deletes the Lease of n2":        {func() error { return remove(own, "n2") }, "a node that is in the cluster"},
		"deletes the ID of n2":           {func() error { return remove(own, "troupe-id-2") }, "a node that is in the cluster"},
		"deletes the Lease of a gone":    {func() error { return remove(own, "gone") }, ""},
		"deletes the ID of a gone":       {func() error { return remove(own, "troupe-id-3") }, ""},
		"n2 deletes its own Lease":       {func() error { return remove(c.agentIn(t, "troupe-system:troupe-agent", "n2"), "n2") }, ""},
		"in another namespace":           {func() error { return create(elsewhere, "n3", `{"id":1,"name":"n1"}`) }, "its own node only"},
		"with a token without a node":    {func() error { return create(unbound, "n1", `{"id":1,"name":"n1"}`) }, "names no node"},
		"removes its taints":             {func() error { return node(own, "n1", `{"spec":{"taints":[`+quarantine+`]}}`) }, ""},
		"removes one of its taints":      {func() error { return node(own, "n1", `{"spec":{"taints":[`+quarantine+`,`+taint+`]}}`) }, ""},
		"removes the quarantine":         {func() error { return node(own, "n1", `{"spec":{"taints":[`+taint+`]}}`) }, "only the taint troupe.dev/agent-not-ready"},
		"removes taints of another node": {func() error { return node(own, "n2", `{"spec":{"taints":[`+quarantine+`]}}`) }, "its own Node only"},
		"the same, another namespace":    {func() error { return node(elsewhere, "n2", `{"spec":{"taints":[`+quarantine+`]}}`) }, "its own Node only"},
		"adds a taint":                   {func() error { return node(own, "n1", `{"spec":{"taints":[{"key":"x","effect":"NoExecute"}]}}`) }, "may add no taint"},
		"a finalizer":                    {func() error { return node(own, "n1", `{"metadata":{"finalizers":["x.test/y"]}}`) }, "nothing of a Node except its taints"},
		"an owner": {func() error {
			return node(own, "n1", `{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"Pod","name":"p","uid":"u"}]}}`)
		}, "nothing of a Node except its taints"},
		"a provider": {func() error { return node(own, "n1", `{"spec":{"providerID":"x://y"}}`) }, "nothing of a Node except its taints"},
		"a label":    {func() error { return node(own, "n1", `{"metadata":{"labels":{"x":"y"}}}`) }, "nothing of a Node except its taints"},
	}
	for _, probe := range []string{"the Lease of another node", "deletes the Lease of n2", "removes the quarantine"} {
		controlplane.Eventually(t, "policies in force", func() string { // a moment after they are there
			if err := cases[probe].write(); err != nil && strings.Contains(err.Error(), "ValidatingAdmissionPolicy") {
				return ""
			}
			return probe
		})
	}
	for name, tc := range cases {
		switch err := tc.write(); {
		case tc.refused == "" && err != nil:
			t.Errorf("%s: refused: %v", name, err)
		case tc.refused != "" && (err == nil || !strings.Contains(err.Error(), tc.refused)):
			t.Errorf("%s: %v, want it refused because of %q", name, err, tc.refused)
		}
	}
}
