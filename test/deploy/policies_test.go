package deploy

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/troupe-vpp/troupe/test/build"
	"github.com/troupe-vpp/troupe/test/controlplane"
)

// object decodes one document of YAML.
func object(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	o := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &o.Object); err != nil {
		t.Fatalf("%v:\n%s", err, text)
	}
	return o
}

// service has external IPs, slice has endpoints ("addresses: [10.1.1.5]") and an owner in another
// namespace for each target that is named.
func service(namespace, externalIPs string) string {
	return "{apiVersion: v1, kind: Service, metadata: {name: web, namespace: " + namespace + "}, spec: {ports: [{port: 80}], externalIPs: [" + externalIPs + "]}}"
}

func slice(namespace, addressType, endpoints string) string {
	return "{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, metadata: {name: web, namespace: " + namespace + "}, addressType: " + addressType +
		", endpoints: [" + endpoints + "]}"
}

// TestPolicies: what the admission policies of deploy/policies refuse and admit on an API server.
func TestPolicies(t *testing.T) {
	c := start(t)
	files, err := filepath.Glob(filepath.Join(build.Root(), "deploy", "policies", "*.yaml"))
	if err != nil || len(files) != 2 {
		t.Fatalf("policies %v, %v: want 2", files, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, document := range bytes.Split(text, []byte("\n---\n")) {
			if err := c.create(t, object(t, string(document)), false); err != nil {
				t.Fatalf("%s: %v", file, err)
			}
		}
	}
	for _, n := range []string{"shop", "edge"} {
		c.Namespace(n)
	}
	for _, probe := range []string{service("shop", "203.0.113.9"), slice("shop", "IPv4", "{addresses: [198.51.100.1]}")} {
		controlplane.Eventually(t, "policies in force", func() string {
			// a moment after they are there
			if err := c.create(t, object(t, probe), true); err != nil && strings.Contains(err.Error(), "ValidatingAdmissionPolicy") {
				return ""
			}
			return "admitted: " + probe
		})
	}
	for name, tc := range map[string]struct{ object, refused string }{
		"service without external IPs":          {service("shop", ""), ""},
		"external IP of this namespace":         {service("edge", "203.0.113.9"), ""},
		"external IP of another namespace":      {service("shop", "203.0.113.9"), "this namespace may not use 203.0.113.9"},
		"external IP outside of the networks":   {service("edge", "203.0.113.9, 198.51.100.7"), "this namespace may not use 198.51.100.7"},
		"endpoint in the pod networks":          {slice("edge", "IPv4", "{addresses: [10.1.1.5]}"), ""},
		"endpoint in networks of the namespace": {slice("shop", "IPv4", "{addresses: [192.0.2.5]}"), ""},
		"endpoint in those of another one":      {slice("edge", "IPv4", "{addresses: [192.0.2.5]}"), "must lie in 10.1.0.0/16"},
		"endpoint of the control plane":         {slice("shop", "IPv4", "{addresses: [10.1.1.5]}, {addresses: [172.18.0.2]}"), "must lie in 10.1.0.0/16, 192.0.2.0/24"},
		"IPv6 endpoint outside of the networks": {slice("shop", "IPv6", "{addresses: ['fd00::5']}"), "must lie in"},
		"no endpoints":                          {slice("shop", "IPv4", ""), ""},
		"target in another namespace":           {slice("shop", "IPv4", "{addresses: [10.1.1.5], targetRef: {kind: Pod, name: p, namespace: edge}}"), "must be in the namespace of the EndpointSlice"},
	} {
		t.Run(name, func(t *testing.T) {
			err := c.create(t, object(t, tc.object), true)
			switch {
			case tc.refused == "" && err != nil:
				t.Errorf("refused: %v", err)
			case tc.refused != "" && (err == nil || !strings.Contains(err.Error(), tc.refused)):
				t.Errorf("%v, want it refused because of %q", err, tc.refused)
			}
		})
	}
}
