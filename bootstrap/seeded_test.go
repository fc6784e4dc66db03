package bootstrap

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"html"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/acl"
	"go.fd.io/govpp/binapi/acl_types"
	"go.fd.io/govpp/binapi/fib_types"
	interfaces "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/ip"
	"go.fd.io/govpp/binapi/ip_types"

	"github.com/troupe-vpp/troupe/bootstrap/agent"
	troupeapi "github.com/troupe-vpp/troupe/bootstrap/api"
	"github.com/troupe-vpp/troupe/bootstrap/cli"
	"github.com/troupe-vpp/troupe/bootstrap/config"
)

// screens is the directory for a picture of each seeded fault.
var screens = flag.String("screens", "", "directory for a picture of each fault, made with Chromium")

// shows waits for a text in a document. With -screens it leaves a picture under the name of the
// fault.
func shows(fault string, from http.Handler, document, text string) error {
	server := httptest.NewServer(from)
	defer server.Close()
	for began, seen := time.Now(), ""; !strings.Contains(seen, text); time.Sleep(20 * time.Millisecond) {
		if time.Since(began) > patience {
			return fmt.Errorf("%s of %s does not say %q:\n%s", document, fault, text, seen)
		}
		body, _, err := cli.NewClient(server.Listener.Addr().String()).Text(context.Background(), strings.TrimPrefix(document, "/"))
		if err != nil {
			return err
		}
		seen = html.UnescapeString(regexp.MustCompile("<[^>]*>").ReplaceAllString(body, ""))
	}
	if *screens == "" {
		return nil
	}
	file := filepath.Join(*screens, strings.ReplaceAll(fault, " ", "-")+".png")
	out, err := exec.Command("chromium", "--headless", "--no-sandbox", "--window-size=1300,1000", "--screenshot="+file, server.URL+document).CombinedOutput()
	if err != nil {
		return fmt.Errorf("chromium: %w\n%s", err, out)
	}
	return nil
}

// pageAt has the page of an agent, by its control socket or its address.
func pageAt(network, address string) http.Handler {
	return &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(&url.URL{Scheme: "http", Host: "127.0.0.1:80"}) },
		Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, network, address)
		}},
	}
}

// interfacesOf lists the interfaces of the VPP of an agent.
func interfacesOf(t *testing.T, address string) []troupeapi.Interface {
	t.Helper()
	var all troupeapi.Interfaces
	r := troupe("", strings.Fields("get interfaces -o json"+address)...)
	if err := json.Unmarshal([]byte(r.out), &all); err != nil {
		t.Fatal(err, r.errs)
	}
	return all.Items
}

// TestSeededFaults: the command that docs/operations.md gives for a fault names its cause, and the
// table has a remedy, as the page has. incidents.txtar plays the others: a pod without interface,
// an empty VPP, rows removed, all endpoints unready, and VPP away.
func TestSeededFaults(t *testing.T) {
	operations, err := os.ReadFile(filepath.Join("..", "docs", "operations.md"))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("../deploy/demo")); err != nil {
		t.Fatal(err)
	}
	edge := filepath.Join(dir, "edge.yaml")
	web, err := os.ReadFile(edge)
	if err != nil {
		t.Fatal(err)
	}
	edit := func(old, text string) {
		web = []byte(strings.Replace(string(web), old, text, 1))
		if err := os.WriteFile(edge, web, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	edit("healthCheckNodePort: 31080", "healthCheckNodePort: 31080\n  loadBalancerSourceRanges: [198.51.100.0/24]")
	begin := func(change func(*config.Agent)) (a *agent.Agent, page http.Handler, address string) {
		cfg, control := config.Defaults(), filepath.Join(t.TempDir(), "ctl")
		cfg.NodeName, cfg.VPP.Mode, cfg.Etcd.Mode, cfg.Services.ServiceCIDRs = "shop-a", config.VPPSimulated, config.EtcdNone, []string{"10.96.0.0/12"}
		cfg.NAT44.SessionLimit, cfg.NAT44.SessionLimitMax, cfg.NAT44.SessionCheckInterval = 1024, 1024, config.Duration(time.Second)
		cfg.Healing.RediscoverInterval = config.Duration(time.Second)
		cfg.API.HTTPAddress, cfg.API.ControlSocket, cfg.API.HealthzBindAddress = "", control, ""
		change(cfg)
		a, err := agent.Start(cfg, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = a.Close() })
		return a, pageAt("unix", control), " --control-socket " + control
	}
	a, page, here := begin(func(cfg *config.Agent) { cfg.Kubernetes.Source = config.SourceFilesPrefix + dir })
	await := func(t *testing.T, command, text string) (r result) {
		t.Helper()
		for began := time.Now(); time.Since(began) < patience; time.Sleep(20 * time.Millisecond) {
			if r = troupe("", strings.Fields(command)...); strings.Contains(squeeze(r.out)+r.errs, text) {
				return r
			}
		}
		t.Fatalf("%s: no %q in\n%s%s", command, text, r.out, r.errs)
		return r
	}
	await(t, "status"+here, "shop-a yes")
	away := write(t, t.TempDir(), "kubeconfig", "clusters: [{name: c, cluster: {server: http://127.0.0.1:1}}]\ncontexts: [{name: c, context: {cluster: c}}]\ncurrent-context: c\n")
	_, pageAlone, alone := begin(func(cfg *config.Agent) { cfg.Kubernetes.Kubeconfig = away })
	request := func(msg api.Message) func() {
		return func() {
			if _, err := a.Simulator().Exec(msg); err != nil {
				t.Fatal(err)
			}
		}
	}
	all := ip.IPRouteV2{
		Src: 26, Prefix: ip_types.Prefix{Address: ip_types.Address{Un: ip_types.AddressUnionIP4([4]byte{10, 96})}, Len: 12},
		NPaths: 1, Paths: []fib_types.FibPath{{Type: fib_types.FIB_API_PATH_TYPE_ICMP_UNREACH}},
	}
	fleet := newFleetOf(t).kubeconfig
	pageOfAll := pageAt("tcp", serving(t, `all nodes: http://(\S+)/`, "status", "--all-nodes", "--serve", "127.0.0.1:0", "--kubeconfig", fleet))
	const differs = "the operations below repair it. Next, on the node: troupe resync"
	open := acl.ACLAddReplace{Tag: "troupe/deny/local", R: []acl_types.ACLRule{{IsPermit: acl_types.ACL_ACTION_API_PERMIT}}}
	for _, fault := range []struct {
		name, command, address string
		seed                   func()
		want                   string
		page                   http.Handler // nil = none, the picture is of the text
		document, says         string
	}{
		{"an access list of Troupe was changed", "diff", here, request(&open), "acl troupe/deny/local", page, "/diff", differs},
		{"a route of Troupe was removed", "diff", here, request(&ip.IPRouteAddDelV2{Route: all}), "add reject route 10.96.0.0/12", page, "/diff", "add reject route 10.96.0.0/12"},
		{"the table of NAT sessions is full", "get sessions", here, func() { _, _ = a.Simulator().FillSessions(1025) }, "1025 1025 true", page, "/", "Next: raise nat44.sessionLimitMax;"},
		{"an interface of a pod is in another table", "get service NAMESPACE/NAME", here, func() {
			request(&ip.IPTableAddDel{IsAdd: true, Table: ip.IPTable{TableID: 7}})()
			for _, i := range interfacesOf(t, here) {
				if slices.Contains(i.Pods, "shop/web-5f7d-0") {
					request(&interfaces.SwInterfaceSetTable{SwIfIndex: interface_types.InterfaceIndex(i.Index), VrfID: 7})()
				}
			}
		}, "10.1.1.4:8080 (table 7)", page, "/services/shop/web", "10.1.1.4:8080 (table 7): its interface is in another table than others. Next: let the CNI move it;"},
		{"a second agent is started", "agent", here + " --node-name shop-a --vpp simulated --etcd none --kube-source files:" + dir + " --http-address= --healthz-bind-address=", func() {}, "is in use by another agent", nil, "/", "does a second agent run on this node?"},
		{"an endpoint drains", "explain NAMESPACE/NAME", here, func() { edit("ready: true", "ready: false") }, "draining", page, "/services/shop/web", "draining"},
		{"a node has another version", "status --all-nodes", " --kubeconfig " + fleet, func() {}, "differs: version v1.2.2", pageOfAll, "/", "Next: kubectl -n troupe-system rollout status ds/troupe-agent"},
		{"the API server is away", "status", alone, func() {}, "connection refused", pageAlone, "/", "Next: check the API server, and kubernetes.apiServer; troupe check"},
	} {
		t.Run(fault.name, func(t *testing.T) {
			if !regexp.MustCompile(`(?m)^\| ` + fault.name + " \\| `troupe " + fault.command + "` \\| [^|]+ \\| [^|]+ \\|$").Match(operations) {
				t.Error("docs/operations.md has another command, or no remedy")
			}
			fault.seed()
			r := await(t, strings.Replace(fault.command, "NAMESPACE/NAME", "shop/web", 1)+fault.address, fault.want)
			if fault.page == nil {
				fault.page = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, r.out+r.errs) })
			}
			if err := shows(fault.name, fault.page, fault.document, fault.says); err != nil {
				t.Error(err)
			}
		})
	}
	if status, err := a.Backend().Status(t.Context()); err != nil || status.Draining != 1 {
		t.Errorf("the node in one line: %+v, %v, want 1 draining endpoint", status, err)
	}
}
