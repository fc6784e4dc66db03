package files

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/yaml"

	"github.com/troupe-vpp/troupe/kube"
	"github.com/troupe-vpp/troupe/kube/normalize"
)

// FuzzObject: a Service and its EndpointSlice with arbitrary values give the same result in JSON,
// in YAML and in a List. Each error names one of the two objects.
func FuzzObject(f *testing.F) {
	f.Add("shop", "web", "10.96.0.10", "203.0.113.5", "192.168.0.0/16", "http", "TCP", int32(80), int32(30080), "10.1.1.3", "n1")
	f.Add("shop", "web", "fd00::10", "1.2.3", "0.0.0.0/0", "", "SCTP", int32(-1), int32(70000), "fd00:1::3", "")
	f.Add("", "a/b", "None", "", " 10.0.0.0/33", "x", "ICMP", int32(0), int32(0), "::ffff:10.1.1.3", "n1")
	f.Add("shop", "yes", "010.096.000.010", "null", "~", "0x1", "UDP", int32(65535), int32(1), "10.1.1.3\n", "#")
	f.Fuzz(func(t *testing.T, namespace, name, clusterIP, ingress, sources, port, protocol string, number, nodePort int32, address, node string) {
		valid := func(text string) string {
			// only texts that YAML can hold: JSON allows control characters that YAML does not
			return strings.Map(func(r rune) rune {
				if !unicode.IsPrint(r) && r != '\n' && r != '\t' {
					return '?'
				}
				return r
			}, text)
		}
		meta := metav1.ObjectMeta{Namespace: valid(namespace), Name: valid(name), UID: "u"}
		proto := corev1.Protocol(valid(protocol))
		service := &corev1.Service{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Service"}, ObjectMeta: meta,
			Spec: corev1.ServiceSpec{
				Type: corev1.ServiceTypeLoadBalancer, ClusterIP: valid(clusterIP), ClusterIPs: []string{valid(clusterIP)},
				LoadBalancerSourceRanges: []string{valid(sources)},
				Ports: []corev1.ServicePort{{
					Name: valid(port), Protocol: proto, Port: number, NodePort: nodePort, TargetPort: intstr.FromString("x"),
				}},
			},
			Status: corev1.ServiceStatus{LoadBalancer: corev1.LoadBalancerStatus{Ingress: []corev1.LoadBalancerIngress{{IP: valid(ingress)}}}},
		}
		slice := &discoveryv1.EndpointSlice{
			TypeMeta: metav1.TypeMeta{APIVersion: "discovery.k8s.io/v1", Kind: "EndpointSlice"}, ObjectMeta: meta, AddressType: discoveryv1.AddressTypeIPv4,
			Ports:     []discoveryv1.EndpointPort{{Name: &service.Spec.Ports[0].Name, Protocol: &proto, Port: &number}},
			Endpoints: []discoveryv1.Endpoint{{Addresses: []string{valid(address)}, NodeName: &service.Spec.Ports[0].Name}},
		}
		slice.Labels = map[string]string{discoveryv1.LabelServiceName: valid(node)}
		texts := map[string][]byte{
			"JSON": append(asJSON(t, service), asJSON(t, slice)...),
			"YAML": bytes.Join([][]byte{asYAML(t, service), asYAML(t, slice)}, []byte("\n---\n")),
			"list": asJSON(t, map[string]any{"apiVersion": "v1", "kind": "List", "items": []any{service, slice}}),
		}
		want, problems := Decode(bytes.NewReader(texts["JSON"]), "f")
		for _, p := range problems {
			if p.GetKind() != normalize.KindService && p.GetKind() != normalize.KindEndpointSlice || p.GetObject() == "" || p.GetMessage() == "" {
				t.Errorf("an error that names no object: %v", p)
			}
		}
		for form, text := range texts {
			got, others := Decode(bytes.NewReader(text), "f")
			if len(others) != len(problems) {
				t.Errorf("%s: %d errors, in JSON %d: %v, %v", form, len(others), len(problems), others, problems)
			}
			if diff := cmp.Diff(kube.Collect("n1", want, nil), kube.Collect("n1", got, nil), protocmp.Transform()); diff != "" {
				t.Errorf("%s means something else than JSON (-JSON +%s):\n%s\n%s", form, form, diff, text)
			}
		}
	})
}

func asJSON(t *testing.T, value any) []byte {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func asYAML(t *testing.T, value any) []byte {
	t.Helper()
	text, err := yaml.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return text
}
