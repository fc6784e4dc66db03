package capture

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/vlib"

	"github.com/troupe-vpp/troupe/vpp/link"
)

// ErrInUse means that another user traces packets: VPP has traced some that Run has not asked for.
// Then Run clears nothing.
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
// which is no error. seen is how many packets were traced.
//
// VPP has one trace for all users, and does not tell whether it is armed. Run first looks for
// packets for the time Every: an armed trace at an input with traffic has some. At the end Run
// clears the trace if that has only packets that Run asked for. A trace without packets is not
// cleared: Run takes back its own requests at its inputs, and leaves those of others.
func Run(ctx context.Context, vpp link.Caller, o Options) (matching []Packet, seen int, err error) {
	if o.Every == 0 {
		o.Every = time.Second
	}
	o.Scan = max(o.Scan, leastScan)
	if err := free(ctx, vpp, o); err != nil || ctx.Err() != nil {
		return nil, 0, err
	}
	var last trace
	inputs, err := start(ctx, vpp, o)
	defer func() {
		clean, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		err = errors.Join(err, finish(clean, vpp, o, inputs))
	}()
	for err == nil {
		if last, err = show(context.WithoutCancel(ctx), vpp, max(o.Scan, 1)*len(drivers())); err != nil {
			break
		}
		matching = matching[:0]
		for i := range last.packets {
			if o.Match(&last.packets[i]) && len(matching) < o.Most {
				matching = append(matching, last.packets[i])
			}
		}
		if len(matching) >= o.Most || ctx.Err() != nil {
			return matching, len(last.packets), nil
		}
		select {
		case <-ctx.Done():
		case <-time.After(o.Every):
		}
	}
	return nil, 0, err
}

// free reports ErrInUse if another user traces packets.
func free(ctx context.Context, vpp link.Caller, o Options) error {
	if o.Replace {
		_, err := command(ctx, vpp, "clear trace")
		return err
	}
	for look := range 2 {
		if look > 0 {
			select {
			case <-ctx.Done():
				return nil
			case <-time.After(o.Every):
			}
		}
		if t, err := show(ctx, vpp, 1); err != nil || len(t.packets) > 0 {
			return cmp.Or(err, ErrInUse)
		}
	}
	return nil
}

// finish removes from VPP what Run has traced. The trace of another user stays as it is.
func finish(ctx context.Context, vpp link.Caller, o Options, inputs []string) error {
	if len(inputs) == 0 {
		return nil
	}
	t, err := show(ctx, vpp, maxShown)
	if err != nil {
		return err
	}
	if t.others(inputs, o.Scan) {
		return fmt.Errorf("%w: it is not cleared, and has packets of this capture as well", ErrInUse)
	}
	if len(t.packets) > 0 {
		_, err = command(ctx, vpp, "clear trace")
		return err
	}
	return takeBack(ctx, vpp, o, inputs)
}

// leastScan is the smallest number that takeBack can subtract: VPP adds its default for -1.
const leastScan = 2

// takeBack subtracts from each input what Run has added: VPP adds numbers to what others have asked
// for, also negative ones. It would be wrong after a packet that Run has asked for, because VPP
// would then trace without a limit: should one have come meanwhile, the trace is cleared.
func takeBack(ctx context.Context, vpp link.Caller, o Options, inputs []string) error {
	var requests []api.Message
	for _, node := range inputs {
		requests = append(requests, &vlib.CliInband{Cmd: fmt.Sprintf("trace add %s -%d", node, o.Scan)})
	}
	answers, err := vpp.Do(ctx, requests)
	for i := range answers {
		err = errors.Join(err, answers[i].Err)
	}
	t, failed := show(ctx, vpp, 1)
	if err = errors.Join(err, failed); err != nil || len(t.packets) > 0 {
		_, failed = command(ctx, vpp, "clear trace")
	}
	return errors.Join(err, failed)
}

// maxShown is above what all inputs trace in all threads.
const maxShown = 1_000_000

// trace is what VPP has traced.
type trace struct {
	packets []Packet
	threads int
}

// show reads at most so many packets of each thread.
func show(ctx context.Context, vpp link.Caller, most int) (trace, error) {
	text, err := command(ctx, vpp, fmt.Sprintf("show trace max %d", most))
	return trace{Parse(text), strings.Count(text, "- Start of thread ")}, err
}

// others reports whether a trace has packets that inputs with such a limit in each thread cannot
// have traced.
func (t trace) others(inputs []string, limit int) bool {
	at := map[string]int{}
	for i := range t.packets {
		if steps := t.packets[i].Steps; len(steps) > 0 {
			at[steps[0].Node]++
		}
	}
	for node, traced := range at {
		if !slices.Contains(inputs, node) || traced > limit*max(t.threads, 1) {
			return true
		}
	}
	return false
}

// start adds a trace to each input that VPP has, and returns these.
func start(ctx context.Context, vpp link.Caller, o Options) (added []string, err error) {
	inputs := o.Inputs
	if len(inputs) == 0 {
		inputs = drivers()
	}
	var refused []string
	for _, node := range inputs {
		text, err := command(ctx, vpp, fmt.Sprintf("trace add %s %d", node, o.Scan))
		if err == nil && strings.TrimSpace(text) == "" {
			added = append(added, node)
			continue
		}
		refused = append(refused, strings.TrimSpace(node+" "+text))
	}
	if len(added) == 0 {
		return nil, fmt.Errorf("VPP traces none of these nodes: %s", strings.Join(refused, "; "))
	}
	return added, nil
}

// command runs a command of the debug CLI that only reads or traces.
func command(ctx context.Context, vpp link.Caller, text string) (string, error) {
	output, err := link.Command(ctx, vpp, text)
	if err != nil {
		return "", fmt.Errorf("%s: %w", text, err)
	}
	return output, nil
}
