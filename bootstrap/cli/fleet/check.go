package fleet

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/troupe-vpp/troupe/bootstrap/api"
	"github.com/troupe-vpp/troupe/bootstrap/cli"
	"github.com/troupe-vpp/troupe/bootstrap/cli/node"
	"github.com/troupe-vpp/troupe/bootstrap/config"
	"github.com/troupe-vpp/troupe/kube/apiserver"
	"github.com/troupe-vpp/troupe/kube/check"
	"github.com/troupe-vpp/troupe/kube/informers"
	"github.com/troupe-vpp/troupe/vpp/routes"
)

// States of a line of `troupe check`.
const (
	checkOK      = "ok"
	checkWarn    = "warning"
	checkFailed  = "failed"
	checkSkipped = "skipped"
)

// checkLine is one line of `troupe check`.
type checkLine struct {
	Check string `json:"check" column:"CHECK"`
	State string `json:"state" column:"STATE"`
	// Found is the present state. Do is the remedy; "" = none is needed.
	Found string `json:"found" column:"FOUND"`
	Do    string `json:"do,omitempty" column:"DO"`
}

// checks collects lines.
type checks struct {
	lines []checkLine
	cfg   *config.Agent
}

func (c *checks) add(state, check, found, do string) {
	c.lines = append(c.lines, checkLine{check, state, strings.ReplaceAll(found, "\n", "; "), do})
}

// result adds a line, ok or failed with the error, and reports whether it is ok.
func (c *checks) result(check, found string, err error, do string) bool {
	if err != nil {
		c.add(checkFailed, check, err.Error(), do)
		return false
	}
	c.add(checkOK, check, found, "")
	return true
}

// NewCheck returns `troupe check`.
func NewCheck(std cli.Streams) *cobra.Command {
	cmd := &cobra.Command{
		Use: "check", Short: "Check a node before an install, and all nodes after it", Args: cobra.NoArgs,
		Long: `Check the needs of an agent with this configuration: VPP with its plugins, messages and
statistics, the API server and the rights there, kube-proxy, the networks of pods and services,
ports and the data directory, and the agent that runs here. Run it on a node, or in a pod of the
agent. With --all-nodes the command checks the agents of all nodes. Each line is ok or has a remedy; the exit code is 1 if a
check has failed. The command changes nothing, except with --packets: it makes a namespace with a
service and two pods on each of the nodes, which connect to each other, and deletes the
namespace. Above 30 nodes the pod of a node connects to those of 30 nodes. Pods end after 10 minutes
in any case; the next run deletes the namespace of a run that was killed.`,
		Example: "  troupe check --config agent.yaml\n  troupe check --all-nodes --connect 10.96.0.10:53\n  troupe check --all-nodes --packets all",
	}
	f := newFleet(cmd, 30*time.Second)
	flags := config.AddFlags(cmd, "node-name", "vpp-api-socket", "kube-api-server", "kube-source", "renderer", "cluster-cidr", "service-cidr", "data-dir")
	all := cmd.Flags().Bool("all-nodes", false, "also check the agents of all nodes, through the API server")
	packets := cmd.Flags().StringSlice("packets", nil, "`nodes` between whose pods packets are sent, to pods, cluster IPs and node ports; all = every node with an agent")
	connect := cmd.Flags().StringSlice("connect", nil, "addresses HOST:PORT of services or pods to connect to from here by TCP")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		ctx, cancel := context.WithTimeout(cmd.Context(), f.timeout)
		defer cancel()
		doc, err := flags.Load()
		if err != nil {
			return cli.ConfigError(err)
		}
		c := &checks{cfg: doc.Agent}
		c.result("configuration", "valid", doc.Validate(), "correct it: troupe config explain FIELD")
		c.vpp(ctx, *all)
		c.local()
		if _, files := c.cfg.Kubernetes.FilesDir(); !files {
			c.kubernetes(ctx, f.Kubeconfig)
		}
		if *all {
			c.agents(ctx, f, std)
		} else {
			c.agentHere(ctx, f)
		}
		for _, address := range *connect {
			c.connect(ctx, address)
		}
		if len(*packets) > 0 {
			c.packets(cmd.Context(), f, *packets)
		}
		if err := f.Out.Print(std.Out, c.lines, func(t *cli.Columns) { t.Table("", c.lines) }); err != nil {
			return err
		}
		failed := 0
		for _, l := range c.lines {
			if l.State == checkFailed {
				failed++
			}
		}
		if failed > 0 {
			return fmt.Errorf("%d of %d checks have failed", failed, len(c.lines))
		}
		return nil
	}
	return cmd
}

// vpp checks VPP and its features for the renderers of the configuration. elsewhere is true if the
// command may run on a machine without VPP.
func (c *checks) vpp(ctx context.Context, elsewhere bool) {
	socket := c.cfg.VPP.APISocket
	if c.cfg.VPP.Mode == config.VPPSimulated {
		c.add(checkSkipped, "VPP", "simulated", "")
		return
	}
	if _, err := os.Stat(socket); os.IsNotExist(err) && elsewhere {
		c.add(checkSkipped, "VPP", "no socket "+socket+" here; the agents check theirs", "")
		return
	} else if os.IsNotExist(err) {
		c.add(checkFailed, "VPP", "no socket "+socket+" here", `run this on a node with VPP; in startup.conf: socksvr { socket-name `+socket+` }`)
		return
	}
	v, err := node.AskVPP(ctx, socket)
	if err != nil {
		c.add(checkFailed, "VPP", err.Error(), "start VPP; the agent needs the rights of VPP's socket")
		return
	}
	available := 0
	for _, f := range v.Features {
		if f.Available {
			available++
		}
	}
	c.add(checkOK, "VPP", fmt.Sprintf("version %s has %d of %d features", v.Version, available, len(v.Features)), "")
	c.layout(ctx, socket)
	if stats := c.cfg.VPP.StatsSocket; stats != "" {
		if _, err := os.Stat(stats); err != nil {
			c.add(checkWarn, "VPP: statistics", err.Error()+": counting NAT sessions stops the workers briefly",
				`in startup.conf: statseg { socket-name `+stats+` }, or set vpp.statsSocket`)
		}
	}
	c.renderer(v)
	families := c.cfg.Chosen(v.IPv4.CNAT).Families()
	six := c.cfg.Renderer != config.RendererAuto || strings.Contains(strings.Join(slices.Concat(c.cfg.Services.ClusterCIDRs, c.cfg.Services.ServiceCIDRs), ","), ":")
	for _, f := range v.Features {
		served, serves := families[f.Renderer], f.Renderer == config.RendererNAT44 || f.Renderer == config.RendererCNAT
		if f.Available || serves && len(served) == 0 {
			continue
		}
		if serves && !slices.Contains(served, "IPv4") && !six {
			c.add(checkSkipped, "VPP: "+f.Name, "needed for IPv6 only: "+f.Summary, "")
			continue
		}
		do := "another version of VPP has it: docs/vpp-versions.md"
		if strings.Contains(f.Summary, "is not loaded") {
			do = "enable the plugin in the section plugins of startup.conf"
		}
		c.add(checkWarn, "VPP: "+f.Name, f.Without+": "+f.Summary, do)
	}
}

// renderer checks whether the renderers of the configuration can serve in the VPP.
func (c *checks) renderer(v *node.VPPVersion) {
	const name = "renderer of IPv4"
	chosen := c.cfg.Chosen(v.IPv4.CNAT)
	used := strings.Join(chosen.RenderersOf("IPv4"), "")
	if v.IPv4.CNAT && used != config.RendererCNAT {
		c.add(checkFailed, name, "nat44 cannot serve local pods: "+v.IPv4.Why, "set renderer: auto or cnat")
	} else if c.cfg.Renderer == config.RendererAuto {
		c.add(checkOK, name, used+": "+v.IPv4.Why, "")
	}
	if !v.Others.Settings || chosen.Renderer == config.RendererNAT44 {
		return
	}
	state, found := checkWarn, "another client of VPP has set up source NAT of CNAT, which stays as it is"
	for i, family := range []string{"IPv4", "IPv6"} {
		if served := chosen.Families()[config.RendererCNAT]; slices.Contains(served, family) && !v.Others.Serves(i == 1) {
			found += fmt.Sprintf("; %s is not served, because its SNAT address is %s", family, v.Others.Whose[i])
			if i == 0 {
				state = checkFailed
			}
		}
	}
	c.add(state, "CNAT", found, "see docs/globals.md")
}

// layout names what of VPP's set-up by others decides how services are served.
func (c *checks) layout(ctx context.Context, socket string) {
	l, err := node.AskLayout(ctx, socket)
	if err != nil {
		c.add(checkWarn, "VPP: layout", err.Error(), "start VPP; the agent needs the rights of VPP's socket")
		return
	}
	c.refusals(l.Unable, l.Unable6)
	if len(l.Bridged) > 0 {
		c.add(checkWarn, "VPP: bridge domains", "members of the bridge domains of "+first(l.Bridged)+" reach each other without it, so pods there would answer each other past NAT",
			"docs/cni.md, Bridge domains")
	}
	var where []string
	for _, at := range []string{l.Enter, l.Leave} {
		if at != "" {
			where = append(where, "where packets "+at)
		}
	}
	if len(where) > 0 {
		c.add(checkWarn, "VPP: access lists of others", strings.Join(where, ", ")+"; with NAT44 the first kind sees addresses of services, with CNAT those of endpoints",
			"docs/semantics.md, Access lists of others")
	}
}

// refusals says what clients of services without endpoints get, and why they are not refused.
func (c *checks) refusals(unable, unable6 string) {
	const name = "VPP: refusals"
	do, clients := "docs/semantics.md, Where nothing is served", "clients"
	if unable == "" {
		unable, clients = unable6, "IPv6 clients"
	}
	switch unable {
	case "":
		c.add(checkOK, name, "the session layer is on: clients of services without endpoints are refused", "")
		return
	case routes.NoSessionLayer:
		do = "in startup.conf: session { enable }"
	}
	c.add(checkWarn, name, unable+": "+clients+" of services without endpoints get host unreachable by TCP, a time-out by UDP", do)
}

// local checks the ports and the data directory on this machine.
func (c *checks) local() {
	if address := c.cfg.API.HealthzBindAddress; address != "" {
		c.port("port of the node's health", address, `kube-proxy or an agent runs here: beside kube-proxy set api.healthzBindAddress: ""`)
	}
	if address := c.cfg.API.HTTPAddress; address != "" {
		c.port("port of the API", address, "an agent runs here, or set api.httpAddress")
	}
	if dir := c.cfg.DataDir; dir != "" {
		err := os.MkdirAll(dir, 0o700)
		if err == nil {
			var probe *os.File
			if probe, err = os.CreateTemp(dir, ".check"); err == nil {
				_ = probe.Close()
				err = os.Remove(probe.Name())
			}
		}
		c.result("data directory", dir+" can be written", err, "give the agent the right to write there, or set dataDir")
	}
}

// port warns if an address is in use.
func (c *checks) port(check, address, do string) {
	l, err := net.Listen("tcp", address)
	if err != nil {
		c.add(checkWarn, check, err.Error(), do)
		return
	}
	_ = l.Close()
	c.add(checkOK, check, address+" is free", "")
}

// connect checks a TCP connection to a service or a pod.
func (c *checks) connect(ctx context.Context, address string) {
	began := time.Now()
	conn, err := (&net.Dialer{Timeout: 5 * time.Second}).DialContext(ctx, "tcp", address)
	if err == nil {
		err = conn.Close()
	}
	c.result("connection to "+address, "connected in "+time.Since(began).Round(time.Millisecond).String(), err,
		"troupe explain --packet SOURCE "+address+"/TCP explains it")
}

// agents checks the running agents.
func (c *checks) agents(ctx context.Context, f *fleet, std cli.Streams) {
	lines, err := f.statuses(ctx, std.Errs)
	if !c.result("agents", fmt.Sprintf("%d nodes have a pod of the agent", len(lines)), err, "install the agent; the user needs list of pods and create of pods/portforward there") {
		return
	}
	for i := range lines {
		c.agent(&lines[i])
	}
}

// agentHere checks the agent of this node, if one answers.
func (c *checks) agentHere(ctx context.Context, f *fleet) {
	if lines, err := f.status(ctx); err == nil {
		c.agent(&lines[0])
	}
}

// agent checks a running agent.
func (c *checks) agent(s *nodeStatus) {
	name := "agent of node " + s.Node
	switch others := countServices(s.Services) - s.Services[api.ServiceInSync]; {
	case s.Error != "":
		c.add(checkFailed, name, s.Error, "kubectl describe pod; its log")
	case !s.Ready:
		c.add(checkFailed, name, "not ready: "+s.Reason, "troupe get resync --node "+s.Node)
	case len(s.Warnings) > 0:
		c.add(checkWarn, name, "ready; "+strings.Join(s.Warnings, "; "), "docs/operations.md, Alerts; troupe events --node "+s.Node)
	case others > 0:
		c.add(checkWarn, name, fmt.Sprintf("ready; %d services are not in sync", others), "troupe get services --node "+s.Node)
	case len(s.Differs) > 0:
		c.add(checkWarn, name, "ready; differs: "+strings.Join(s.Differs, ", "), "bring all nodes to one version; compare with troupe status --all-nodes")
	default:
		c.add(checkOK, name, fmt.Sprintf("ready; %d services are in sync", s.Services[api.ServiceInSync]), "")
	}
}

// kubernetes checks the API server, the rights there and the networks of the cluster.
func (c *checks) kubernetes(ctx context.Context, kubeconfig string) {
	client, err := c.client(kubeconfig)
	if err != nil {
		c.add(checkFailed, "API server", err.Error(), "set kubernetes.apiServer to the control plane endpoint, or pass --kubeconfig")
		return
	}
	v, err := client.Version(ctx)
	if err != nil {
		c.add(checkFailed, "API server", err.Error(), "the address must be one that a node reaches without any service: kubernetes.apiServer")
		return
	}
	if check.TooOld(v.GitVersion) {
		c.add(checkFailed, "API server", "version "+v.GitVersion, "the agent needs Kubernetes "+check.Oldest+" or later")
		return
	}
	c.add(checkOK, "API server", "version "+v.GitVersion, "")
	const rights = "deploy/kubernetes/base/rbac.yaml has the rights of the agent"
	granted, nodes := check.Rights(ctx, client, len(c.cfg.Services.ServiceCIDRs) == 0)
	for _, r := range granted {
		c.result("right to list "+r.Resource, "granted", r.Err, rights)
	}
	if nodes != nil {
		c.networks(nodes)
	}
	c.kubeProxy(check.KubeProxy(ctx, client))
}

// kubeProxy says what a kube-proxy does beside the agent. Both listen on the port of the node's
// health, unless the configuration leaves it to kube-proxy.
func (c *checks) kubeProxy(nodes int) {
	if nodes == 0 {
		return
	}
	found := fmt.Sprintf("pods on %d nodes; it may stay: the agent serves what enters VPP, kube-proxy serves processes of the host and pods in the kernel", nodes)
	if c.cfg.API.HealthzBindAddress == "" {
		c.add(checkOK, "kube-proxy", found, "")
		return
	}
	c.add(checkWarn, "kube-proxy", found, `beside it set api.healthzBindAddress: ""; without it: docs/operations.md, "Removing kube-proxy"`)
}

// client makes a client in the same way as the agent. Outside of a pod, without a kubeconfig in the
// configuration, it uses the kubeconfig of kubectl.
func (c *checks) client(kubeconfig string) (*apiserver.Client, error) {
	file := cmp.Or(kubeconfig, c.cfg.Kubernetes.Kubeconfig)
	if file == "" && os.Getenv("KUBERNETES_SERVICE_HOST") == "" {
		home, _ := os.UserHomeDir()
		file = cmp.Or(os.Getenv("KUBECONFIG"), filepath.Join(home, ".kube", "config"))
	}
	serving, err := c.cfg.Services.Serving()
	if err != nil {
		return nil, err
	}
	return informers.NewClient(informers.ClientConfig{Kubeconfig: file, Servers: c.cfg.Kubernetes.APIServer, ServiceCIDRs: serving.ServiceCIDRs, QPS: 50, Burst: 50})
}

// networks compares the networks of the configuration with the nodes.
func (c *checks) networks(nodes []check.Node) {
	name := c.cfg.NodeName
	if name != "" && !slices.ContainsFunc(nodes, func(n check.Node) bool { return n.Name == name }) {
		c.add(checkFailed, "node "+name, "the cluster has no such Node", "set nodeName to the name of the Node")
	}
	if len(c.cfg.Services.ClusterCIDRs) == 0 {
		c.add(checkWarn, "pod networks", "services.clusterCIDRs is empty: clients in pods of other nodes count as outside of the cluster", "set services.clusterCIDRs")
	}
	found := check.Compare(nodes, c.cfg.Services.ClusterCIDRs, c.cfg.Services.ServiceCIDRs)
	c.many("pod networks are inside of services.clusterCIDRs", found.Outside, "add them to services.clusterCIDRs")
	c.many("pod networks and services.serviceCIDRs are apart", found.Overlap, "correct services.clusterCIDRs and services.serviceCIDRs")
	if len(found.Without) > 0 && c.cfg.NAT44.LoopbackIP == "" {
		c.add(checkWarn, "pod networks of the nodes", "none: "+first(found.Without), "without spec.podCIDRs set nat44.loopbackIP on each node")
	}
}

// many adds a line, which fails if there are exceptions.
func (c *checks) many(check string, exceptions []string, do string) {
	if len(exceptions) > 0 {
		c.add(checkFailed, check, "not "+first(exceptions), do)
		return
	}
	c.add(checkOK, check, "", "")
}

// first lists the first few items, and the number of the others.
func first(all []string) string {
	const most = 3
	if len(all) <= most {
		return strings.Join(all, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(all[:most], ", "), len(all)-most)
}
