package controlplane

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// ServiceCIDR is the range of the cluster IPs.
const ServiceCIDR = "10.96.0.0/12"

// ClusterIP is the address of the service default/kubernetes.
const ClusterIP = "10.96.0.1"

// admin is the token of the test, of a loopback server that lives as long as the test.
const admin = "admin-of-the-test"

// Credentials are those of Admin, as Kubeconfig takes them.
const Credentials = "token: " + admin

// egressConfig sends the connections to nodes to a proxy; has its socket.
const egressConfig = `apiVersion: apiserver.k8s.io/v1beta1
kind: EgressSelectorConfiguration
egressSelections:
- {name: cluster, connection: {proxyProtocol: HTTPConnect, transport: {uds: {udsName: %s}}}}
`

// Plane is a control plane.
type Plane struct {
	// Admin is a client with all rights and without a limit of requests.
	Admin kubernetes.Interface

	t       testing.TB
	bin     string // directory of the binaries
	dir     string
	etcd    string   // address of its clients
	address string   // of the API server
	flags   []string // of the API server, beside those of every test
	api     *Process

	controllers *Process
}

// Start starts a control plane with the binaries in bin and waits until it is ready. Pods need no
// service account in it.
func Start(t testing.TB, bin string) *Plane {
	t.Helper()
	p := prepare(t, bin)
	p.flags = []string{"--disable-admission-plugins=ServiceAccount,TaintNodesByCondition"}
	p.start()
	return p
}

// StartForNodes is Start for kubelets: pods get tokens of service accounts, and the API server
// connects to nodes through the proxy at EgressSocket. More flags of the API server may follow.
func StartForNodes(t testing.TB, bin string, more ...string) *Plane {
	t.Helper()
	p := prepare(t, bin)
	egress := p.file("egress.yaml")
	if err := os.WriteFile(egress, fmt.Appendf(nil, egressConfig, p.EgressSocket()), 0o600); err != nil {
		t.Fatal(err)
	}
	p.flags = []string{
		"--disable-admission-plugins=TaintNodesByCondition", "--egress-selector-config-file=" + egress,
		"--kubelet-preferred-address-types=InternalIP", "--kubelet-client-certificate=" + p.Certificate(), "--kubelet-client-key=" + p.file("api.key"),
	}
	p.flags = append(p.flags, more...)
	p.start()
	return p
}

// prepare writes the files of a control plane.
func prepare(t testing.TB, bin string) *Plane {
	t.Helper()
	p := &Plane{t: t, bin: bin, dir: t.TempDir(), etcd: FreeAddress(t), address: FreeAddress(t)}
	if err := writeKeys(p.dir); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(p.file("tokens.csv"), []byte(admin+",admin,admin,system:masters\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(p.file("audit.yaml"), []byte(auditPolicy), 0o600); err != nil {
		t.Fatal(err)
	}
	client, err := kubernetes.NewForConfig(p.AdminConfig())
	if err != nil {
		t.Fatalf("make client of the test: %v", err)
	}
	p.Admin = client
	return p
}

// start starts etcd, the API server and the controllers.
func (p *Plane) start() {
	p.t.Helper()
	peer := "http://" + FreeAddress(p.t)
	clients := "http://" + p.etcd
	Spawn(p.t, p.dir, filepath.Join(p.bin, "etcd"), "--data-dir", p.file("etcd"), "--name", "default", "--unsafe-no-fsync", "--log-level", "warn",
		"--listen-client-urls", clients, "--advertise-client-urls", clients, "--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer,
		"--initial-cluster", "default="+peer)
	p.StartAPI()
	p.StartControllers()
}

// AdminConfig returns the configuration of a client with all rights and without a limit of
// requests.
func (p *Plane) AdminConfig() *rest.Config {
	return &rest.Config{Host: "https://" + p.address, BearerToken: admin, QPS: -1, TLSClientConfig: rest.TLSClientConfig{CAFile: p.file("api.crt")}}
}

// StartAPI starts the API server, with the data that etcd has and perhaps more flags, and waits
// until it is ready.
func (p *Plane) StartAPI(more ...string) {
	p.t.Helper()
	_, port, err := net.SplitHostPort(p.address)
	if err != nil {
		p.t.Fatal(err)
	}
	flags := []string{
		"--etcd-servers=http://" + p.etcd, "--etcd-compaction-interval=0",
		"--bind-address=127.0.0.1", "--advertise-address=127.0.0.1", "--secure-port=" + port, "--endpoint-reconciler-type=none",
		"--tls-cert-file=" + p.file("api.crt"), "--tls-private-key-file=" + p.file("api.key"),
		"--service-account-issuer=https://kubernetes.default.svc", "--service-account-key-file=" + p.file("api.key"),
		"--service-account-signing-key-file=" + p.file("api.key"), "--service-cluster-ip-range=" + ServiceCIDR,
		"--authorization-mode=Node,RBAC", "--token-auth-file=" + p.file("tokens.csv"), "--profiling=false",
		"--audit-policy-file=" + p.file("audit.yaml"), "--audit-log-path=" + p.file("audit.log"),
	}
	p.api = Spawn(p.t, p.dir, filepath.Join(p.bin, "kube-apiserver"), slices.Concat(flags, p.flags, more)...)
	Eventually(p.t, "API server ready", func() string {
		if p.api.Ended() {
			p.t.Fatalf("kube-apiserver has ended:\n%s", p.api.Tail())
		}
		_, err := p.Admin.CoreV1().RESTClient().Get().AbsPath("/readyz").DoRaw(context.Background())
		if err != nil {
			return err.Error()
		}
		return ""
	})
}

// EgressSocket is the Unix socket at which the API server expects an HTTP proxy (CONNECT) to the
// networks of nodes, with StartForNodes.
func (p *Plane) EgressSocket() string { return p.file("egress.sock") }

// Certificate is the file of the certificate of the API server, which is its own authority, for
// kubelets that it connects to.
func (p *Plane) Certificate() string { return p.file("api.crt") }

// Address is that of the API server, on loopback.
func (p *Plane) Address() string { return p.address }

// StartControllers starts the controllers, again where they run: after an outage of the API server
// they would wait for up to a minute.
func (p *Plane) StartControllers() {
	p.t.Helper()
	if p.controllers != nil {
		p.controllers.Kill()
	}
	kubeconfig := p.Kubeconfig("controllers", Credentials)
	p.controllers = Spawn(p.t, p.dir, filepath.Join(p.bin, "controllers"), "--kubeconfig", kubeconfig, "--root-ca-file", p.file("api.crt"))
}

// StopAPI kills the API server; etcd and the controllers stay.
func (p *Plane) StopAPI() { p.api.Kill() }

// Kubeconfig writes a kubeconfig whose user has the credentials (one line of YAML) and returns its
// path.
func (p *Plane) Kubeconfig(name, credentials string) string {
	p.t.Helper()
	file := p.file(name + ".kubeconfig")
	content := fmt.Sprintf(`apiVersion: v1
kind: Config
clusters: [{name: test, cluster: {server: "https://%s", certificate-authority: %s}}]
users: [{name: test, user: {%s}}]
contexts: [{name: test, context: {cluster: test, user: test}}]
current-context: test
`, p.address, p.file("api.crt"), credentials)
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		p.t.Fatalf("write kubeconfig: %v", err)
	}
	return file
}

// Compact makes etcd forget everything before the revision.
func (p *Plane) Compact(revision string) {
	p.t.Helper()
	answer, err := http.Post("http://"+p.etcd+"/v3/kv/compaction", "application/json", body(`{"revision":"`+revision+`","physical":true}`))
	if err != nil {
		p.t.Fatalf("compact etcd: %v", err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		p.t.Fatalf("compact etcd at revision %s: %s", revision, answer.Status)
	}
}

// file is the path of a file of the control plane.
func (p *Plane) file(name string) string { return filepath.Join(p.dir, name) }

// APIAddress is "host:port" of the API server, which speaks TLS.
func (p *Plane) APIAddress() string { return p.address }

// EtcdAddress is "host:port" of the clients of etcd, without TLS.
func (p *Plane) EtcdAddress() string { return p.etcd }

// FreeAddress returns an address of loopback whose port a server of the test can listen at. For a
// minute the kernel gives the port to no other socket that lets it choose: a connection that ended
// there is in the state TIME_WAIT, which only a listener with this very port passes over.
func FreeAddress(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("find free port: %v", err)
	}
	defer l.Close()
	client, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatalf("reserve port: %v", err)
	}
	defer client.Close()
	server, err := l.Accept()
	if err != nil {
		t.Fatalf("reserve port: %v", err)
	}
	_ = server.Close() // before its client: the side that closes first keeps the port
	return l.Addr().String()
}

// Get asks an agent and decodes the answer into v, unless that is nil. It returns what went wrong,
// for Eventually.
func Get(client *http.Client, url string, v any) string {
	answer, err := client.Get(url)
	if err != nil {
		return err.Error()
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	switch {
	case err != nil:
		return err.Error()
	case answer.StatusCode != http.StatusOK:
		return fmt.Sprintf("%s: %s", answer.Status, text)
	case v == nil:
		return ""
	}
	if err := json.Unmarshal(text, v); err != nil {
		return fmt.Sprintf("decode %s: %v", url, err)
	}
	return ""
}
