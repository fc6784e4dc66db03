package fleet

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/troupe-vpp/troupe/bootstrap/cli"
	"github.com/troupe-vpp/troupe/kube/check"
	"github.com/troupe-vpp/troupe/kube/podforward"
	"github.com/troupe-vpp/troupe/messages"
)

const (
	// connections is how often a pod connects to an address.
	connections = 10
	// forPackets limits the check with packets, for which pods have to start. The time limit of
	// the other checks does not include it.
	forPackets = 3 * time.Minute
	// allNodes is the value of --packets for every node that has an agent.
	allNodes = "all"
)

// packets sends packets between pods of the nodes, and adds three lines for each node.
func (c *checks) packets(ctx context.Context, f *fleet, only []string) {
	ctx, cancel := context.WithTimeout(ctx, forPackets)
	defer cancel()
	results, err := c.sendPackets(ctx, f, only)
	if err != nil {
		c.add(checkFailed, "packets between pods", err.Error(), "the user needs create, list and delete of namespaces, and create and get of pods, pods/log and services")
		return
	}
	c.judge(results)
}

// sendPackets runs the check with packets on the nodes with these names.
func (c *checks) sendPackets(ctx context.Context, f *fleet, only []string) ([]check.Result, error) {
	client, err := c.client(f.Kubeconfig)
	if err != nil {
		return nil, err
	}
	serving, err := c.cfg.Services.Serving()
	if err != nil {
		return nil, err
	}
	way, err := f.Way()
	if err != nil {
		return nil, err
	}
	agents, err := podforward.All(ctx, way)
	if err != nil {
		return nil, err
	}
	options := &check.Options{Core: client.Core(), Times: connections}
	for i := range agents {
		if a := &agents[i]; slices.Contains(only, a.Node) || slices.Contains(only, allNodes) {
			options.Nodes, options.Image = append(options.Nodes, a.Node), a.Image
		}
	}
	for _, node := range only {
		if node != allNodes && !slices.Contains(options.Nodes, node) {
			return nil, fmt.Errorf("node %s has no agent", node)
		}
	}
	options.NodePortsAt = func(addresses []string) (at []string) {
		node := &messages.NodeContext{Node: &messages.Node{Addresses: addresses}, Addresses: addresses}
		for _, family := range []messages.IPFamily{messages.IPFamily_IPV4, messages.IPFamily_IPV6} {
			at = append(at, serving.NodePortAddresses.Select(node, family)...)
		}
		return at
	}
	return check.Run(ctx, options)
}

// judge adds a line for each node and kind of addresses.
func (c *checks) judge(results []check.Result) {
	advice := map[string]string{
		check.Pods:       "no service is involved: the network of the pods (CNI) does not connect these nodes",
		check.ClusterIPs: "troupe explain --packet and troupe capture on that node show the way of a packet",
		check.NodePorts:  "services.nodePortAddresses has the addresses with node ports; the network must lead to them",
	}
	for len(results) > 0 {
		from := results[0].From
		end := slices.IndexFunc(results, func(r check.Result) bool { return r.From != from })
		if end < 0 {
			end = len(results)
		}
		for _, kind := range []string{check.Pods, check.ClusterIPs, check.NodePorts} {
			asked, answered := 0, 0
			var wrong []string
			for _, r := range results[:end] {
				if r.Kind != kind {
					continue
				}
				asked++
				if why := wrongWith(&r); why != "" {
					wrong = append(wrong, r.Address+" "+why)
				} else {
					answered++
				}
			}
			found := fmt.Sprintf("%d of %d addresses answer, %d connections to each", answered, asked, connections)
			check := "packets from a pod of " + from + " to " + kind
			switch {
			case asked == 0: // node ports at other addresses than those of the Nodes
				c.add(checkSkipped, check, "no address of a Node serves them", "")
			case len(wrong) > 0:
				c.add(checkFailed, check, found+"; not "+first(wrong), advice[kind])
			default:
				c.add(checkOK, check, found, "")
			}
		}
		results = results[end:]
	}
}

// wrongWith says what is wrong with a result; "" = nothing.
func wrongWith(r *check.Result) string {
	if r.Failed > 0 {
		return fmt.Sprintf("(%d failed: %s)", r.Failed, r.Error)
	}
	for node := range r.Answers {
		if r.Node != "" && node != r.Node {
			return fmt.Sprintf("(the pod of %s answers, not the pod of %s)", node, r.Node)
		}
	}
	return ""
}

// NewPackets returns `troupe packets`, the two ends of `troupe check --packets` inside of pods.
func NewPackets(std cli.Streams) *cobra.Command {
	cmd := &cobra.Command{Use: "packets", Short: "Answer and ask in the pods of troupe check --packets", Hidden: true}
	cmd.AddCommand(&cobra.Command{
		Use: "answer NAME", Short: "Answer TCP connections with a name", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			listener, err := net.Listen("tcp", ":"+strconv.Itoa(check.AnswerPort))
			if err != nil {
				return fmt.Errorf("listen for packets: %w", err)
			}
			return check.Answer(cmd.Context(), listener, args[0])
		},
	}, &cobra.Command{
		Use: "ask TIMES ADDRESS...", Short: "Connect to addresses HOST:PORT and print who answers, as JSON", Args: cobra.MinimumNArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			times, err := strconv.Atoi(args[0])
			if err != nil {
				return cli.Usagef("TIMES %s: want a number", args[0])
			}
			return json.NewEncoder(std.Out).Encode(check.Ask(cmd.Context(), args[1:], times, check.ForProgramming))
		},
	})
	return cmd
}
