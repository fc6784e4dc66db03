package connector_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"sigs.k8s.io/yaml"

	"github.com/troupe-vpp/troupe/test/build"
	"github.com/troupe-vpp/troupe/test/controlplane"
)

// consul is a Consul agent, server of its own datacenter, with a proxy in front of it. The
// connector sees only the proxy.
type consul struct {
	testing.TB
	bin, dir string
	extra    string // configuration
	ports    []string
	token    string // of the test
	agent    *controlplane.Process

	front    *httptest.Server
	requests atomic.Int64
	mu       sync.Mutex
	// answers instead of Consul if it returns true
	spoil func(w http.ResponseWriter, r *http.Request) bool
}

// startConsul starts Consul with further configuration in its language.
func startConsul(t testing.TB, extra, token string) *consul {
	t.Helper()
	bin, err := build.Consul(t.Context(), t.Logf)
	if err != nil {
		t.Fatal(err)
	}
	c := &consul{TB: t, bin: bin, dir: shortDir(t), extra: extra, token: token, ports: freePorts(t, 5)}
	c.start()
	behind := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: c.address()})
	behind.ErrorHandler = func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) }
	c.front = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c.requests.Add(1)
		c.mu.Lock()
		spoil := c.spoil
		c.mu.Unlock()
		if spoil == nil || !spoil(w, r) {
			behind.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(func() {
		c.front.CloseClientConnections() // blocking queries
		c.front.Close()
	})
	return c
}

// start starts the process, and waits until it knows its leader.
func (c *consul) start() {
	c.Helper()
	c.agent = controlplane.Spawn(c, c.dir, filepath.Join(c.bin, "consul"), "agent", "-dev", "-bind", "127.0.0.1", "-client", "127.0.0.1", "-grpc-port", "-1",
		"-http-port", c.ports[0], "-dns-port", c.ports[1], "-serf-lan-port", c.ports[2], "-serf-wan-port", c.ports[3], "-server-port", c.ports[4],
		"-disable-host-node-id", "-log-level", "warn", "-hcl", "check_update_interval = \"0s\" "+c.extra)
	controlplane.Eventually(c, "Consul", func() string {
		_, err := c.call(http.MethodGet, "catalog/node/"+c.node(), nil)
		if err == nil && len(c.get("status/leader")) < 4 {
			err = errors.New("no leader")
		}
		if err != nil {
			return err.Error()
		}
		return ""
	})
}

func (c *consul) address() string { return "127.0.0.1:" + c.ports[0] }

// node is the name of the node of the agent.
func (c *consul) node() string {
	name, err := os.Hostname()
	if err != nil {
		c.Fatal(err)
	}
	return name
}

// call makes a request to Consul itself.
func (c *consul) call(method, path string, body any) ([]byte, error) {
	text, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(c.Context(), method, "http://"+c.address()+"/v1/"+path, bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	request.Header.Set("X-Consul-Token", c.token)
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	out, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s %s: %s %s", method, path, answer.Status, out)
	}
	return out, err
}

// get asks Consul.
func (c *consul) get(path string) string {
	c.Helper()
	out, err := c.call(http.MethodGet, path, nil)
	if err != nil {
		c.Fatal(err)
	}
	return string(out)
}

// put tells Consul something.
func (c *consul) put(path string, body any) string {
	c.Helper()
	out, err := c.call(http.MethodPut, path, body)
	if err != nil {
		c.Fatal(err)
	}
	return string(out)
}

type object = map[string]any

// register registers instances, each as "NAME PORT ADDRESS TAG..."; the ID is the address. All have
// a check that passes.
func (c *consul) register(lines ...string) {
	c.Helper()
	for _, line := range lines {
		words := strings.Fields(line)
		port, err := strconv.Atoi(words[1])
		if err != nil {
			c.Fatal(err)
		}
		c.put("agent/service/register", object{
			"Name": words[0], "ID": words[2], "Address": words[2], "Port": port, "Tags": words[3:],
			"Check": object{"CheckID": words[2], "TTL": "1h", "Status": "passing"},
		})
	}
}

// spoiled has the proxy answer by itself; nil = Consul does.
func (c *consul) spoiled(how func(w http.ResponseWriter, r *http.Request) bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.spoil = how
	c.front.CloseClientConnections() // those that block, too
}

// direct is a connector that writes files.
type direct struct {
	*connector
	testing.TB
	files string
}

// source is what the connector is told to follow.
func (c *consul) source() string { return "consul=" + c.front.URL }

// connect starts a connector that writes files.
func (c *consul) connect(name, source string, more ...string) *direct {
	c.Helper()
	d := &direct{TB: c, files: filepath.Join(c.dir, "files")}
	if err := os.MkdirAll(d.files, 0o700); err != nil {
		c.Fatal(err)
	}
	d.connector = connect(c, filepath.Join(c.dir, name), append([]string{
		"connector", "--source", source, "--sync-namespace", namespace, "--output", "direct", "--output-directory", d.files,
		"--service-cidr", "10.96.0.0/16",
	}, more...)...)
	return d
}

// want waits until the files are these services, see describe.
func (d *direct) want(lines ...string) {
	d.Helper()
	controlplane.Eventually(d, "services", func() string {
		if have := d.have(); strings.Join(have, "; ") != strings.Join(lines, "; ") {
			return fmt.Sprintf("have %q, want %q", have, lines)
		}
		return ""
	})
}

func (d *direct) have() []string {
	d.Helper()
	return describe(d.objects())
}

// ports returns the ports of the slices of a service, ordered.
func (d *direct) ports(service string) string {
	d.Helper()
	var ports []string
	_, all := d.objects()
	for _, s := range all {
		if s.Labels[discoveryv1.LabelServiceName] == service {
			ports = append(ports, fmt.Sprint(*s.Ports[0].Port))
		}
	}
	slices.Sort(ports)
	return strings.Join(ports, " ")
}

// objects reads the files.
func (d *direct) objects() (services []corev1.Service, all []discoveryv1.EndpointSlice) {
	d.Helper()
	paths, err := filepath.Glob(filepath.Join(d.files, "*.yaml"))
	if err != nil {
		d.Fatal(err)
	}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		var service corev1.Service
		var slice discoveryv1.EndpointSlice
		if strings.HasPrefix(filepath.Base(path), "service-") {
			err = errors.Join(err, yaml.UnmarshalStrict(text, &service))
			services = append(services, service)
		} else {
			err = errors.Join(err, yaml.UnmarshalStrict(text, &slice))
			all = append(all, slice)
		}
		if err != nil {
			d.Fatal(err)
		}
	}
	return services, all
}

// incomplete waits until the connector says that its source is not complete, and why.
func (d *direct) incomplete(why string) {
	d.Helper()
	d.state("incomplete source", func(s state) bool {
		return !s.Sources[0].Complete && strings.Contains(strings.Join(s.Problems, "; "), why)
	})
}

// held waits until these services are held back.
func (d *direct) held(names ...string) {
	d.Helper()
	d.state("services held back", func(s state) bool { return slices.Equal(s.Sources[0].Held, names) })
}

// state is what the connector says of itself.
type state struct {
	Leading, Listed bool
	Sources         []struct {
		Complete bool
		Held     []string
	}
	Problems []string
}

// state waits for a state.
func (c *connector) state(what string, is func(state) bool) {
	c.o.Helper()
	controlplane.Eventually(c.o, what, func() string {
		text, problem := c.get("/api/v1/connector")
		var s state
		if err := json.Unmarshal([]byte(text), &s); problem == "" && (err != nil || len(s.Sources) == 0 || !is(s)) {
			problem = text
		}
		return problem
	})
}

// freePorts returns ports of loopback that servers of the test can listen at.
func freePorts(t testing.TB, n int) (ports []string) {
	t.Helper()
	for range n {
		_, port, _ := net.SplitHostPort(controlplane.FreeAddress(t))
		ports = append(ports, port)
	}
	return ports
}
