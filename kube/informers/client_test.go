package informers

import (
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/rest"
)

const kubeconfig = `apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "https://192.0.2.1:6443"}}]
users: [{name: u, user: {token: t}}]
contexts: [{name: x, context: {cluster: c, user: u}}]
current-context: x
`

func writeKubeconfig(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestClientFromKubeconfig(t *testing.T) {
	path := writeKubeconfig(t, kubeconfig)
	rc, err := restConfig(ClientConfig{Kubeconfig: path, UserAgent: "troupe", QPS: 7})
	if err != nil {
		t.Fatal(err)
	}
	if rc.Host != "https://192.0.2.1:6443" || rc.BearerToken != "t" || rc.QPS != 7 || rc.Burst != 10 || rc.UserAgent != "troupe" ||
		rc.ContentType != "application/vnd.kubernetes.protobuf" || !strings.HasPrefix(rc.AcceptContentTypes, rc.ContentType) {
		t.Errorf("configuration %v", rc)
	}
	if rc, err = restConfig(ClientConfig{Kubeconfig: path, Servers: []string{"https://192.0.2.9"}, Burst: 70}); err != nil || rc.Host != "https://192.0.2.9" || rc.QPS != 5 || rc.Burst != 70 {
		t.Errorf("with another server: %v, %v", rc, err)
	}
	if _, err = restConfig(ClientConfig{Kubeconfig: path, Servers: []string{"https://192.0.2.9", "https://192.0.2.10"}}); err != nil {
		t.Errorf("with several servers: %v", err)
	}
	if client, err := NewClient(ClientConfig{Kubeconfig: path}); err != nil || client == nil {
		t.Errorf("client %v, %v", client, err)
	}
	if _, err := NewClient(ClientConfig{Kubeconfig: path + "x"}); err == nil || !strings.Contains(err.Error(), path+"x") {
		t.Errorf("a kubeconfig that is not there: %v", err)
	}
	if _, err := NewClient(ClientConfig{Kubeconfig: writeKubeconfig(t, "clusters: 5")}); err == nil {
		t.Error("a kubeconfig that is none was taken")
	}
}

// TestCredentialsAreEncrypted: no secret goes to an address without TLS. client-go drops the
// secrets of a kubeconfig in this case, but not the token of a service account.
func TestCredentialsAreEncrypted(t *testing.T) {
	for name, c := range map[string]struct {
		config  rest.Config
		refused bool
	}{
		"a token":      {rest.Config{Host: "http://192.0.2.1:8080", BearerToken: "t"}, true},
		"a token file": {rest.Config{Host: "http://192.0.2.1:8080", BearerTokenFile: "/token"}, true},
		"a password":   {rest.Config{Host: "http://192.0.2.1:8080", Password: "p"}, true},
		// client-go takes http
		"a host without CA": {rest.Config{Host: "192.0.2.1:6443", BearerToken: "t"}, true},
		"a host with CA":    {rest.Config{Host: "192.0.2.1:6443", BearerToken: "t", TLSClientConfig: rest.TLSClientConfig{CAFile: "/ca"}}, false},
		"no credentials":    {rest.Config{Host: "http://127.0.0.1:8001"}, false},
		"TLS":               {rest.Config{Host: "https://192.0.2.1:6443", BearerToken: "t"}, false},
	} {
		if err := encrypted(&c.config); errors.Is(err, ErrCleartext) != c.refused || !c.refused && err != nil {
			t.Errorf("%s: %v, refused %t", name, err, c.refused)
		}
	}
	rc, err := restConfig(ClientConfig{Kubeconfig: writeKubeconfig(t, kubeconfig), Servers: []string{"http://192.0.2.1:8080"}})
	if err != nil || rc.BearerToken != "" {
		t.Errorf("kubeconfig: %v, the token is sent: %t", err, rc.BearerToken != "")
	}
}

// TestCredentialsOfSeveralServersAreEncrypted: an address without TLS is refused even if it is not
// the first.
func TestCredentialsOfSeveralServersAreEncrypted(t *testing.T) {
	_, err := restConfig(ClientConfig{Kubeconfig: writeKubeconfig(t, kubeconfig), Servers: []string{"https://192.0.2.1", "http://192.0.2.2:8080"}})
	if !errors.Is(err, ErrCleartext) || !strings.Contains(err.Error(), "192.0.2.2") {
		t.Errorf("%v", err)
	}
}

func TestNoServerIsKnown(t *testing.T) {
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	t.Setenv("KUBERNETES_SERVICE_PORT", "")
	if _, err := NewClient(ClientConfig{}); !errors.Is(err, ErrNoServer) {
		t.Errorf("outside a pod: %v", err)
	}
}

// TestClusterIPIsRefused uses the environment that the kubelet gives to a pod. A test has no
// service account, so an accepted address fails later, with another error.
func TestClusterIPIsRefused(t *testing.T) {
	for _, c := range []struct {
		name, host, port, env string
		ranges                []string
		want                  bool
	}{
		{"as the kubelet sets it", "10.96.0.1", "443", "10.96.0.1", nil, true},
		{"IPv6", "fd00::0001", "443", "fd00::1", nil, true},
		{"set to the endpoint in the pod", "192.0.2.1", "6443", "10.96.0.1", nil, false},
		{"set to a name", "api.example.com", "6443", "10.96.0.1", nil, false},
		{"known by its range", "10.96.0.1", "443", "", []string{"fd00::/64", "10.96.0.0/12"}, true},
		{"mapped address", "::ffff:10.96.0.1", "443", "", []string{"10.96.0.0/12"}, true},
		{"outside of the range", "192.0.2.1", "6443", "", []string{"10.96.0.0/12"}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Setenv("KUBERNETES_PORT_443_TCP_ADDR", c.env)
			var ranges []netip.Prefix
			for _, r := range c.ranges {
				ranges = append(ranges, netip.MustParsePrefix(r))
			}
			if got := isClusterIP(c.host, c.port, ranges); got != c.want {
				t.Errorf("cluster IP: %t, want %t", got, c.want)
			}
		})
	}
}

func TestInClusterWithOnlyAClusterIP(t *testing.T) {
	t.Setenv("KUBERNETES_SERVICE_HOST", "10.96.0.1")
	t.Setenv("KUBERNETES_SERVICE_PORT", "443")
	t.Setenv("KUBERNETES_PORT_443_TCP_ADDR", "10.96.0.1")
	if _, err := NewClient(ClientConfig{}); !errors.Is(err, ErrClusterIP) || !strings.Contains(err.Error(), "10.96.0.1") || !strings.Contains(err.Error(), "kubernetes.apiServer") {
		t.Errorf("with nothing else: %v", err)
	}
	for name, config := range map[string]ClientConfig{"allowed": {AllowClusterIP: true}, "with a server": {Servers: []string{"192.0.2.1:6443"}}} {
		if _, err := NewClient(config); errors.Is(err, ErrClusterIP) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
