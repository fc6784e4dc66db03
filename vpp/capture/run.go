package capture

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/vlib"

	"github.com/troupe-vpp/troupe/vpp/link"
)

// ErrInUse means that VPP has traced packets already, for another user.
var ErrInUse = errors.New("VPP's trace buffer has packets of another user (show trace)")

// Options bound a capture.
type Options struct {
	// Inputs are the nodes where packets enter; empty = the nodes of all drivers that VPP has.
	Inputs []string
	// Scan is how many packets each input traces in each thread, 1 to 1000.
	Scan int
	// Most is how many matching packets are enough.
	Most int
	// Match selects packets.
	Match func(*Packet) bool
	// Replace clears what another user has traced.
	Replace bool
	// Every is the time between two reads of the trace; each stops the workers for the time
	// that it takes. 0 = 1 s.
	Every time.Duration
}

// drivers are the nodes where packets enter VPP, by driver.
func drivers() []string {
	return []string{
		"dpdk-input", "virtio-input", "af-packet-input", "af_xdp-input", "memif-input", "avf-input", "rdma-input", "vmxnet3-input", "vhost-user-input",
		"pg-input",
	}
}

// Run traces until there are enough packets, every input has traced as many as it may, or ctx ends,
// which is no error. Then it clears the trace. seen is how many packets were traced.
func Run(ctx context.Context, vpp link.Caller, o Options) (matching []Packet, seen int, err error) {
	before, err := command(ctx, vpp, "show trace max 1")
	if err != nil {
		return nil, 0, err
	}
	if !o.Replace && len(Parse(before)) > 0 {
		return nil, 0, ErrInUse
	}
	if _, err := command(ctx, vpp, "clear trace"); err != nil {
		return nil, 0, err
	}
	defer func() {
		clean, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		_, cleared := command(clean, vpp, "clear trace")
		err = errors.Join(err, cleared)
	}()
	if err := start(ctx, vpp, o); err != nil {
		return nil, 0, err
	}
	every := o.Every
	if every == 0 {
		every = time.Second
	}
	for {
		text, err := command(context.WithoutCancel(ctx), vpp, fmt.Sprintf("show trace max %d", max(o.Scan, 1)*len(drivers())))
		if err != nil {
			return nil, 0, err
		}
		all := Parse(text)
		matching = matching[:0]
		for i := range all {
			if o.Match(&all[i]) && len(matching) < o.Most {
				matching = append(matching, all[i])
			}
		}
		if len(matching) >= o.Most || ctx.Err() != nil {
			return matching, len(all), nil
		}
		select {
		case <-ctx.Done():
		case <-time.After(every):
		}
	}
}

// start adds a trace to each input that VPP has.
func start(ctx context.Context, vpp link.Caller, o Options) error {
	inputs, added := o.Inputs, 0
	if len(inputs) == 0 {
		inputs = drivers()
	}
	var refused []string
	for _, node := range inputs {
		text, err := command(ctx, vpp, fmt.Sprintf("trace add %s %d", node, o.Scan))
		if err == nil && strings.TrimSpace(text) == "" {
			added++
			continue
		}
		refused = append(refused, strings.TrimSpace(node+" "+text))
	}
	if added == 0 {
		return fmt.Errorf("VPP traces none of these nodes: %s", strings.Join(refused, "; "))
	}
	return nil
}

// command runs a command of the debug CLI that only reads or traces.
func command(ctx context.Context, vpp link.Caller, text string) (string, error) {
	answers, err := vpp.Do(ctx, []api.Message{&vlib.CliInband{Cmd: text}})
	if err != nil {
		return "", fmt.Errorf("%s: %w", text, err)
	}
	if answers[0].Err != nil {
		return "", fmt.Errorf("%s: %w", text, answers[0].Err)
	}
	reply, ok := answers[0].Reply.(*vlib.CliInbandReply)
	if !ok {
		return "", fmt.Errorf("%s: VPP answered with %T", text, answers[0].Reply)
	}
	return reply.Reply, nil
}
