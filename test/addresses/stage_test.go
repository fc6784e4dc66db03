package addresses_test

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"github.com/troupe-vpp/troupe/test/build"
	"github.com/troupe-vpp/troupe/test/controlplane"
)

const (
	namespace = "troupe-addresses"
	account   = "troupe-addresses"

	class               = "troupe.dev/vpp"
	poolAnnotation      = "troupe.dev/address-pool"
	addressesAnnotation = "troupe.dev/addresses"
	sharingAnnotation   = "troupe.dev/address-sharing-key"
)

// troupe is the path of the program, built once for all tests; written before the first one begins.
var troupe string

func TestMain(m *testing.M) { os.Exit(build.WithAgent(&troupe, m.Run)) }

// town is a control plane that knows AddressPools.
type town struct {
	*testing.T
	*controlplane.Plane
	client     dynamic.Interface
	dir, token string
	started    int
}

// stage starts a control plane.
func stage(t *testing.T) *town {
	t.Helper()
	bin, err := build.ControlPlane(t.Context(), t.Logf)
	if err != nil {
		t.Fatal(err)
	}
	o := &town{T: t, Plane: controlplane.Start(t, bin), dir: t.TempDir()}
	if o.client, err = dynamic.NewForConfig(o.AdminConfig()); err != nil {
		t.Fatal(err)
	}
	manifests := filepath.Join(build.Root(), "deploy", "kubernetes", "addresses")
	o.Grant(namespace, filepath.Join(manifests, "rbac.yaml"))
	o.token = o.Token(namespace, account, "first")
	o.Define(filepath.Join(manifests, "definition.yaml"))
	return o
}

// pools are the AddressPools.
func (o *town) pools() dynamic.ResourceInterface {
	return o.client.Resource(schema.GroupVersionResource{Group: "troupe.dev", Version: "v1alpha1", Resource: "addresspools"})
}

// pool makes a pool, or changes the spec of one.
func (o *town) pool(name, spec string) {
	o.Helper()
	controlplane.Eventually(o, "pool "+name, func() string {
		if err := o.tryPool(name, spec); err != nil {
			if apierrors.IsInvalid(err) {
				o.Fatal(err)
			}
			return err.Error() // a new kind is known after a moment
		}
		return ""
	})
}

func (o *town) tryPool(name, spec string) error {
	object := &unstructured.Unstructured{}
	text := "apiVersion: troupe.dev/v1alpha1\nkind: AddressPool\nmetadata: {name: " + name + "}\nspec: " + spec + "\n"
	if err := yaml.Unmarshal([]byte(text), &object.Object); err != nil {
		o.Fatal(err)
	}
	have, err := o.pools().Get(o.Context(), name, metav1.GetOptions{})
	if err == nil {
		have.Object["spec"] = object.Object["spec"]
		_, err = o.pools().Update(o.Context(), have, metav1.UpdateOptions{FieldValidation: metav1.FieldValidationStrict})
		return err
	}
	_, err = o.pools().Create(o.Context(), object, metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict})
	return err
}

// poolIs waits until a pool has given and free addresses, and says this about itself.
func (o *town) poolIs(name, want string) {
	o.Helper()
	controlplane.Eventually(o, "pool "+name, func() string {
		object, err := o.pools().Get(o.Context(), name, metav1.GetOptions{})
		if err != nil {
			return err.Error()
		}
		var p struct {
			Status struct {
				Given      int                `json:"given"`
				Free       int                `json:"free"`
				Conditions []metav1.Condition `json:"conditions"`
			} `json:"status"`
		}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &p); err != nil {
			return err.Error()
		}
		got := fmt.Sprintf("%d given, %d free", p.Status.Given, p.Status.Free)
		if c := meta.FindStatusCondition(p.Status.Conditions, "Ready"); c == nil {
			got += ", not told"
		} else if c.Message != "" || c.Status != metav1.ConditionTrue {
			got += ", " + c.Reason + ": " + c.Message
		}
		if got != want {
			return fmt.Sprintf("%s, want %s", got, want)
		}
		return ""
	})
}

// service makes a Service of the class of the allocator.
func (o *town) service(name string, change ...func(*corev1.Service)) *corev1.Service {
	o.Helper()
	s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{}}, Spec: corev1.ServiceSpec{
		Type: corev1.ServiceTypeLoadBalancer, LoadBalancerClass: new(class), AllocateLoadBalancerNodePorts: new(false), Ports: []corev1.ServicePort{{Name: "a", Port: 80}},
	}}
	for _, c := range change {
		c(s)
	}
	made, err := o.Admin.CoreV1().Services("default").Create(o.Context(), s, metav1.CreateOptions{})
	if err != nil {
		o.Fatal(err)
	}
	return made
}

// patch changes a Service by a merge patch.
func (o *town) patch(name, patch string) {
	o.Helper()
	if _, err := o.Admin.CoreV1().Services("default").Patch(o.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
		o.Fatal(err)
	}
}

// has waits until a Service has these addresses, and says this about itself.
func (o *town) has(name, want string) {
	o.Helper()
	controlplane.Eventually(o, "addresses of "+name, func() string {
		s, err := o.Admin.CoreV1().Services("default").Get(o.Context(), name, metav1.GetOptions{})
		if err != nil {
			return err.Error()
		}
		if got := describe(s); got != want {
			return fmt.Sprintf("%q, want %q", got, want)
		}
		return ""
	})
}

// describe are the addresses of a Service and the message of its condition.
func describe(s *corev1.Service) string {
	words := []string{}
	for _, i := range s.Status.LoadBalancer.Ingress {
		if i.IPMode == nil || *i.IPMode != corev1.LoadBalancerIPModeVIP {
			words = append(words, "no VIP:")
		}
		words = append(words, i.IP)
	}
	if c := meta.FindStatusCondition(s.Status.Conditions, "troupe.dev/AddressesGiven"); c != nil && c.Message != "" {
		words = append(words, c.Reason+": "+c.Message)
	}
	return strings.Join(words, " ")
}

// event waits for an event about an object.
func (o *town) event(name, reason, note string) {
	o.Helper()
	controlplane.Eventually(o, "event "+reason, func() string {
		list, err := o.Admin.EventsV1().Events("default").List(o.Context(), metav1.ListOptions{})
		if err != nil {
			return err.Error()
		}
		var seen []eventsv1.Event
		for _, e := range list.Items {
			if e.Regarding.Name == name && e.Reason == reason && strings.Contains(e.Note, note) {
				return ""
			}
			if e.Regarding.Name == name {
				seen = append(seen, e)
			}
		}
		return fmt.Sprintf("%v", seen)
	})
}

// allocator is a process.
type allocator struct {
	*controlplane.Process
	address string
}

// allocate starts an allocator.
func (o *town) allocate(arguments ...string) *allocator {
	o.Helper()
	o.started++
	dir := filepath.Join(o.dir, fmt.Sprint(o.started))
	if err := os.Mkdir(dir, 0o700); err != nil {
		o.Fatal(err)
	}
	a := &allocator{address: controlplane.FreeAddress(o)}
	arguments = append([]string{
		"addresses", "--namespace", namespace, "--kubeconfig", o.Kubeconfig("addresses", "token: "+o.token), "--lease-duration", "3s", "--metrics-bind-address", a.address,
	}, arguments...)
	if !build.HasServiceCIDRs() {
		arguments = append(arguments, "--service-cidr", controlplane.ServiceCIDR)
	}
	a.Process = controlplane.Spawn(o, dir, troupe, arguments...)
	return a
}

// get asks the allocator.
func (a *allocator) get(path string) (text string, err error) {
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	answer, err := client.Get("http://" + a.address + path)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", answer.Status, body)
	}
	return string(body), err
}

// leads reports whether it leads and has seen everything.
func (a *allocator) leads() bool {
	text, err := a.get("/metrics")
	return err == nil && strings.Contains(text, "troupe_addresses_leading 1") && strings.Contains(text, "troupe_addresses_services ")
}

// drop deletes a Service.
func (o *town) drop(name string) {
	o.Helper()
	if err := o.Admin.CoreV1().Services("default").Delete(o.Context(), name, metav1.DeleteOptions{}); err != nil {
		o.Fatal(err)
	}
}
