package connector_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/troupe-vpp/troupe/test/build"
	"github.com/troupe-vpp/troupe/test/controlplane"
)

const (
	namespace = "outside"
	account   = "troupe-connector"
)

// troupe is the path of the program, built once for all stories; written before the first one
// begins.
var troupe string

func TestMain(m *testing.M) { os.Exit(build.WithAgent(&troupe, m.Run)) }

// town is a control plane with a catalog in a file.
type town struct {
	testing.TB
	*controlplane.Plane
	dir, token string
}

// stage starts a control plane.
func stage(t testing.TB) *town {
	t.Helper()
	bin, err := build.ControlPlane(t.Context(), t.Logf)
	if err != nil {
		t.Fatal(err)
	}
	o := &town{TB: t, Plane: controlplane.Start(t, bin), dir: shortDir(t)}
	o.Grant(namespace, filepath.Join(build.Root(), "deploy", "kubernetes", "connector", "rbac.yaml"))
	o.token = o.Token(namespace, account, "first")
	return o
}

// shortDir is a new directory; the paths of sockets are limited.
func shortDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "troupe")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// connector is a process.
type connector struct {
	*controlplane.Process
	o      testing.TB
	socket string
}

// arguments of a connector with the catalog of the town.
func (o *town) arguments(more ...string) []string {
	return append(serviceCIDR([]string{
		"connector", "--source", "yaml=" + filepath.Join(o.dir, "catalog.yaml"), "--sync-namespace", namespace,
		"--kubeconfig", o.Kubeconfig("connector", "token: "+o.token),
	}), more...)
}

// serviceCIDR adds the networks of cluster IPs to the arguments where the API server does not know
// them.
func serviceCIDR(arguments []string) []string {
	if build.HasServiceCIDRs() {
		return arguments
	}
	return append(arguments, "--service-cidr", controlplane.ServiceCIDR)
}

// connect starts a connector.
func (o *town) connect(name string) *connector {
	o.Helper()
	return connect(o, filepath.Join(o.dir, name), o.arguments()...)
}

// connect starts a connector with a new directory.
func connect(t testing.TB, dir string, arguments ...string) *connector {
	t.Helper()
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	c := &connector{o: t, socket: filepath.Join(dir, "control.sock")}
	c.Process = controlplane.Spawn(t, dir, troupe, append(arguments, "--control-socket", c.socket, "--http-address", "127.0.0.1:0")...)
	return c
}

// ready waits until the connector is ready.
func (c *connector) ready() {
	c.o.Helper()
	controlplane.Eventually(c.o, "connector ready", func() string {
		_, problem := c.get("/readyz")
		return problem
	})
}

// leads waits until the connector leads, and has compared everything.
func (c *connector) leads() {
	c.o.Helper()
	c.state("connector leads", func(s state) bool { return s.Leading && s.Listed })
}

// get asks the connector.
func (c *connector) get(path string) (text, problem string) {
	if c.Ended() {
		c.o.Fatal("the connector has ended")
	}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", c.socket)
	}}}
	answer, err := client.Get("http://connector" + path)
	if err != nil {
		return "", err.Error()
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		return "", fmt.Sprint(answer.Status, err, string(body))
	}
	return string(body), ""
}

// catalog replaces the catalog. Each line is "NAME PORT ADDRESS..."; an address with "!" before it
// is unhealthy.
func (o *town) catalog(lines ...string) {
	o.Helper()
	text := "services:\n"
	if len(lines) == 0 {
		text = "services: []\n"
	}
	for _, line := range lines {
		words := strings.Fields(line)
		text += fmt.Sprintf("- name: %s\n  ports: [{name: http, port: %s}]\n  instances:\n", words[0], words[1])
		for _, address := range words[2:] {
			healthy := !strings.HasPrefix(address, "!")
			text += fmt.Sprintf("  - {address: %q, healthy: %v}\n", strings.TrimPrefix(address, "!"), healthy)
		}
	}
	o.write(filepath.Join(o.dir, "catalog.yaml"), text)
}

// write writes a file at once.
func (o *town) write(file, text string) {
	o.Helper()
	if err := os.WriteFile(file+".new", []byte(text), 0o600); err != nil {
		o.Fatal(err)
	}
	if err := os.Rename(file+".new", file); err != nil {
		o.Fatal(err)
	}
}

// want waits until the namespace has these services, each as "NAME PORT ADDRESS...", ordered.
func (o *town) want(lines ...string) {
	o.Helper()
	controlplane.Eventually(o, "services", func() string {
		if have := o.have(); !slices.Equal(have, lines) {
			return fmt.Sprintf("have %q, want %q", have, lines)
		}
		return ""
	})
}

// have returns the services of the namespace with the ports and addresses of their slices.
func (o *town) have() (lines []string) {
	o.Helper()
	services, err := o.Admin.CoreV1().Services(namespace).List(o.Context(), metav1.ListOptions{})
	if err != nil {
		o.Fatal(err)
	}
	all, err := o.Admin.DiscoveryV1().EndpointSlices(namespace).List(o.Context(), metav1.ListOptions{})
	if err != nil {
		o.Fatal(err)
	}
	return describe(services.Items, all.Items)
}

// describe describes each service in a line, with its ports and with the addresses of the slices
// that it owns: "!" before those that are not ready, "~" before those that terminate.
func describe(services []corev1.Service, all []discoveryv1.EndpointSlice) (lines []string) {
	for _, s := range services {
		var addresses []string
		for _, slice := range all {
			if slice.Labels[discoveryv1.LabelServiceName] == s.Name && owned(&slice, &s) {
				for _, e := range slice.Endpoints {
					mark := ""
					switch {
					case *e.Conditions.Terminating:
						mark = "~"
					case !*e.Conditions.Ready:
						mark = "!"
					}
					addresses = append(addresses, mark+e.Addresses[0])
				}
			}
		}
		slices.Sort(addresses)
		var ports []string
		for _, p := range s.Spec.Ports {
			ports = append(ports, fmt.Sprint(p.Port))
		}
		lines = append(lines, strings.TrimSpace(s.Name+" "+strings.Join(ports, ",")+" "+strings.Join(addresses, " ")))
	}
	slices.Sort(lines)
	return lines
}

// owned reports whether the slice is deleted with the Service.
func owned(slice *discoveryv1.EndpointSlice, s *corev1.Service) bool {
	return slices.ContainsFunc(slice.OwnerReferences, func(r metav1.OwnerReference) bool { return r.UID == s.UID })
}

// writes returns how many writes of Services and EndpointSlices the API server has allowed the
// connector.
func (o *town) writes() (n int) {
	allowed, _ := o.Requests()
	for r, times := range allowed {
		if (r.Resource == "services" || r.Resource == "endpointslices.discovery.k8s.io") && slices.Contains([]string{"create", "update", "delete"}, r.Verb) {
			n += times
		}
	}
	return n
}
