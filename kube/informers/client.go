package informers

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"os"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/transport"
	"k8s.io/klog/v2"

	"github.com/troupe-vpp/troupe/kube/apiserver"
	"github.com/troupe-vpp/troupe/kube/outbound"
)

// Limits of a connection. client-go limits the TLS handshake to 10 seconds. It pings an HTTP/2
// connection that has been silent for 30 seconds, and closes it after 15 seconds without an answer.
const (
	dialTimeout = 5 * time.Second
	keepAlive   = 30 * time.Second
)

// Errors of NewClient.
var (
	// ErrClusterIP says that the only known address of the API server is a cluster IP. It cannot be
	// used, because this agent itself makes cluster IPs reachable on this node.
	ErrClusterIP = errors.New("the address of the API server is a cluster IP")
	// ErrNoServer says that no address of the API server is configured.
	ErrNoServer = errors.New("no address of the API server")
	// ErrCleartext says that the client would send its token or password without TLS.
	ErrCleartext = errors.New("the credentials would be sent in the clear")
)

// ClientConfig says how to reach the API server.
type ClientConfig struct {
	// Kubeconfig is the path of a kubeconfig file. "" = the service account of the pod
	// (in-cluster).
	Kubeconfig string
	// Servers override the address of the API server: URLs, or "host:port" with TLS, of the control
	// plane endpoint or of the members of the control plane. The client stays at an address that
	// works, and takes the next one when a request to it fails. Credentials and certificate
	// authority are the same for all.
	Servers []string
	// ServiceCIDRs are the ranges of cluster IPs, if they are known: an address in a range is
	// refused with ErrClusterIP. Without ranges a cluster IP is recognised by the environment
	// variables that the kubelet gives to pods.
	ServiceCIDRs []netip.Prefix
	// AllowClusterIP accepts a cluster IP as the address of the API server, for nodes on which
	// another program makes it reachable.
	AllowClusterIP bool
	// UserAgent names the client in the logs of the API server. "" = the default of client-go.
	UserAgent string
	// QPS and Burst limit requests; 0 = 5 and 10, as kube-proxy. The agent lists and watches 4
	// resources, so they hardly matter.
	QPS   float32
	Burst int
}

// NewClient returns a client for New. It does not connect. Objects are transferred as protobuf.
func NewClient(config ClientConfig) (*apiserver.Client, error) {
	rc, err := restConfig(config)
	if err != nil {
		return nil, err
	}
	var others []string
	if len(config.Servers) > 1 {
		others = config.Servers[1:]
	}
	return apiserver.New(rc, others...)
}

// restConfig returns the configuration of the client.
func restConfig(config ClientConfig) (*rest.Config, error) {
	rc, err := baseConfig(config)
	if err != nil {
		return nil, err
	}
	for _, host := range append([]string{rc.Host}, config.Servers...) {
		one := *rc
		one.Host = host
		if err := encrypted(&one); err != nil {
			return nil, err
		}
	}
	rc.ContentType = "application/vnd.kubernetes.protobuf"
	rc.AcceptContentTypes = "application/vnd.kubernetes.protobuf,application/json"
	// Lists and watches are few; the limits protect the API server from a bug here, not from normal
	// work.
	rc.QPS, rc.Burst, rc.UserAgent = cmp.Or(config.QPS, 5), cmp.Or(config.Burst, 10), cmp.Or(config.UserAgent, rc.UserAgent)
	// A short time limit shows a dead address soon. The client then tries the next address, and
	// finds the API server soon after its return.
	rc.Dial = (&net.Dialer{Timeout: dialTimeout, KeepAlive: keepAlive}).DialContext
	rereadToken(rc)
	return rc, nil
}

// encrypted refuses an address without TLS for a client with a token or password.
func encrypted(rc *rest.Config) error {
	server, _, err := rest.DefaultServerUrlFor(rc)
	if err != nil {
		return fmt.Errorf("read address of the API server %s: %w", rc.Host, err)
	}
	secret := rc.BearerToken != "" || rc.BearerTokenFile != "" || rc.Password != "" || rc.ExecProvider != nil || rc.AuthProvider != nil
	if server.Scheme != "https" && secret {
		return fmt.Errorf("%w to %s: give an address with https://", ErrCleartext, server)
	}
	return nil
}

// rereadToken makes the client read its token file again after an answer 401. With BearerTokenFile
// alone client-go reads it once a minute, so that a rotated token is found up to a minute late.
func rereadToken(rc *rest.Config) {
	if rc.BearerTokenFile == "" {
		return
	}
	rc.Wrap(transport.ResettableTokenSourceWrapTransport(transport.NewCachedFileTokenSource(rc.BearerTokenFile)))
	rc.BearerToken, rc.BearerTokenFile = "", ""
}

// baseConfig returns the first address of the API server and the credentials.
func baseConfig(config ClientConfig) (*rest.Config, error) {
	server := ""
	if len(config.Servers) > 0 {
		server = config.Servers[0]
	}
	if config.Kubeconfig != "" {
		rc, err := clientcmd.BuildConfigFromFlags(server, config.Kubeconfig)
		if err != nil {
			return nil, fmt.Errorf("read kubeconfig %s: %w", config.Kubeconfig, err)
		}
		return rc, nil
	}
	host, port := os.Getenv("KUBERNETES_SERVICE_HOST"), os.Getenv("KUBERNETES_SERVICE_PORT")
	if server == "" && !config.AllowClusterIP && isClusterIP(host, port, config.ServiceCIDRs) {
		return nil, fmt.Errorf("%w (KUBERNETES_SERVICE_HOST=%s), which only this agent makes reachable: set kubernetes.apiServer (or "+
			"--kube-api-server) to the control plane endpoint, or give a kubeconfig, or set KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT to it in the pod", ErrClusterIP, host)
	}
	rc, err := rest.InClusterConfig()
	if errors.Is(err, rest.ErrNotInCluster) {
		return nil, fmt.Errorf("%w: this is not a pod (KUBERNETES_SERVICE_HOST is not set) and no kubeconfig is given", ErrNoServer)
	}
	if err != nil {
		return nil, fmt.Errorf("read service account: %w", err)
	}
	if server != "" {
		rc.Host = server
	}
	return rc, nil
}

// isClusterIP reports whether host is the cluster IP of the Service default/kubernetes. The kubelet
// gives every pod the cluster IP in KUBERNETES_SERVICE_HOST and in KUBERNETES_PORT_<port>_TCP_ADDR.
// A pod template that sets the former to the real endpoint does not change the latter.
func isClusterIP(host, port string, ranges []netip.Prefix) bool {
	addr, err := netip.ParseAddr(host)
	if err != nil {
		return false // a DNS name
	}
	for _, r := range ranges {
		if r.Contains(addr.Unmap()) {
			return true
		}
	}
	for _, name := range []string{"KUBERNETES_PORT_" + port + "_TCP_ADDR", "KUBERNETES_PORT_443_TCP_ADDR"} {
		if same, err := netip.ParseAddr(os.Getenv(name)); err == nil && same == addr {
			return true
		}
	}
	return false
}

// BridgeKlog sends the log of client-go to this logger. Records below a warning, such as the end of
// each watch, get the level debug. client-go logs through the global logger of klog, so this is a
// setting of the process: main calls it once, before it makes the first client.
func BridgeKlog(log *slog.Logger) { klog.SetSlogLogger(slog.New(quieter{log.Handler()})) }

// quieter is a handler that gives every record below a warning the level debug.
type quieter struct{ slog.Handler }

// lowered returns the level that a record gets in the log.
func lowered(level slog.Level) slog.Level {
	if level < slog.LevelWarn {
		return min(level, slog.LevelDebug)
	}
	return level
}

func (q quieter) Enabled(ctx context.Context, level slog.Level) bool {
	return q.Handler.Enabled(ctx, lowered(level))
}

func (q quieter) Handle(ctx context.Context, r slog.Record) error {
	r.Level = lowered(r.Level)
	return q.Handler.Handle(ctx, r)
}

func (q quieter) WithAttrs(attrs []slog.Attr) slog.Handler {
	return quieter{q.Handler.WithAttrs(attrs)}
}

func (q quieter) WithGroup(name string) slog.Handler { return quieter{q.Handler.WithGroup(name)} }

// clusterInfo is the path of the ConfigMap in which kubeadm has the address of the API server.
const clusterInfo = "/api/v1/namespaces/kube-public/configmaps/cluster-info"

// largestClusterInfo is a limit in bytes; kubeadm's is 2 KiB.
const largestClusterInfo = 1 << 20

// PublishedServer returns the address of the API server in kube-public/cluster-info, a URL. It asks
// at the address of the configuration, also if that is a cluster IP, because another program may
// serve the cluster IP before this agent does.
func PublishedServer(ctx context.Context, config ClientConfig) (string, error) {
	config.AllowClusterIP = true
	rc, err := restConfig(config)
	if err != nil {
		return "", err
	}
	base, _, err := rest.DefaultServerUrlFor(rc)
	if err != nil {
		return "", fmt.Errorf("read address of the API server %s: %w", rc.Host, err)
	}
	transport, err := rest.TransportFor(rc)
	if err != nil {
		return "", fmt.Errorf("make HTTP client of the API server %s: %w", rc.Host, err)
	}
	client := outbound.Client(base, transport, rc.Timeout)
	defer client.CloseIdleConnections()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, base.JoinPath(clusterInfo).String(), nil)
	if err != nil {
		return "", fmt.Errorf("ask for kube-public/cluster-info: %w", err)
	}
	request.Header.Set("Accept", "application/json")
	answer, err := client.Do(request)
	if err != nil {
		return "", fmt.Errorf("read kube-public/cluster-info: %w", err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return "", fmt.Errorf("read kube-public/cluster-info: %s", answer.Status)
	}
	var object corev1.ConfigMap
	if err := json.NewDecoder(io.LimitReader(answer.Body, largestClusterInfo)).Decode(&object); err != nil {
		return "", fmt.Errorf("decode kube-public/cluster-info: %w", err)
	}
	return serverOf(object.Data["kubeconfig"])
}

// serverOf returns the first address in the kubeconfig of cluster-info.
func serverOf(kubeconfig string) (string, error) {
	info, err := clientcmd.Load([]byte(kubeconfig))
	if err != nil {
		return "", fmt.Errorf("read the kubeconfig in kube-public/cluster-info: %w", err)
	}
	for _, name := range slices.Sorted(maps.Keys(info.Clusters)) {
		server := info.Clusters[name].Server
		if strings.HasPrefix(server, "https://") {
			return server, nil
		}
	}
	return "", errors.New("kube-public/cluster-info names no server with https://")
}
