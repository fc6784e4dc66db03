package simulated

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/troupe-vpp/troupe/actors/chaos"
	"github.com/troupe-vpp/troupe/actors/runtime"
	"github.com/troupe-vpp/troupe/bootstrap/cli"
)

const simulateLong = `Simulate runs the actors of the agent in virtual time, each seed on one
goroutine. The API server, VPP and the node store are simulated. Actors and all dependencies fail.
In the end VPP must have exactly the state that the cluster requires, and no work may be pending.

A seed gives the same run on every machine. If a seed fails, the command prints the smallest failing
plan that it has found. --seed S --seeds 1 --trace prints every message of one seed.`

// NewSimulate returns `troupe chaos simulate`. A campaign may take hours, so SIGINT ends it with
// the report of the seeds so far.
func NewSimulate(to cli.Streams) *cobra.Command {
	cmd := &cobra.Command{Use: "simulate", Short: "Simulate the agent under all kinds of faults", Long: simulateLong, Args: cobra.NoArgs}
	o := chaos.Options{}
	cmd.Flags().IntVar(&o.Seeds, "seeds", 100, "number of seeds to simulate")
	cmd.Flags().Uint64Var(&o.First, "seed", 0, "the first seed")
	cmd.Flags().BoolVar(&o.Swarm, "swarm", false, "let every seed choose the kinds of faults")
	trace := cmd.Flags().Bool("trace", false, "print every message of the seed; needs --seeds 1")
	budget := cmd.Flags().Int("minimise", 200, "number of runs to reduce a failing plan; 0 = print the whole plan")
	output := cli.AddFormat(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		switch {
		case o.Seeds < 1:
			return cli.Usagef("invalid argument %d for \"--seeds\": expected a positive number", o.Seeds)
		case *trace && o.Seeds != 1:
			return cli.Usagef("--trace needs --seeds 1")
		case *trace:
			return traceSeed(to.Out, o)
		}
		return simulate(cmd.Context(), to, o, *budget, output)
	}
	return cmd
}

// simulate runs a campaign and prints its report.
func simulate(ctx context.Context, to cli.Streams, o chaos.Options, budget int, output *cli.Format) error {
	var mu sync.Mutex
	played, failed, began := 0, 0, time.Now()
	o.Progress = func(r *chaos.Result) {
		mu.Lock()
		defer mu.Unlock()
		played++
		if !r.OK() {
			failed++
			fmt.Fprintf(to.Errs, "seed %d: %s\n", r.Seed, r.Violations[0])
		}
		if played%1000 == 0 {
			fmt.Fprintf(to.Errs, "%d of %d seeds, %d failed, %v\n", played, o.Seeds, failed, time.Since(began).Round(time.Second))
		}
	}
	report, err := chaos.Campaign(ctx, o)
	if report == nil || err != nil && !errors.Is(err, context.Canceled) {
		return fmt.Errorf("simulate: %w", err)
	}
	if err := output.Print(to.Out, report, func(c *cli.Columns) { reportTable(c, report) }); err != nil {
		return err
	}
	if report.OK() {
		return err
	}
	first := report.Failures[0]
	smallest, err := chaos.Minimise(first.Seed, first.Plan, budget)
	if err != nil {
		return fmt.Errorf("simulate: %w", err)
	}
	fmt.Fprintf(to.Errs, "seed %d, with %d of %d steps:\n", first.Seed, len(smallest.Plan.Steps), len(first.Plan.Steps))
	const most = 60
	for _, step := range smallest.Plan.Steps[:min(most, len(smallest.Plan.Steps))] {
		fmt.Fprintln(to.Errs, " ", step)
	}
	if n := len(smallest.Plan.Steps) - most; n > 0 {
		fmt.Fprintf(to.Errs, "  and %d more: --seed %d --seeds 1 --trace prints all\n", n, first.Seed)
	}
	for _, v := range smallest.Violations {
		fmt.Fprintln(to.Errs, " ", v)
	}
	return fmt.Errorf("simulate: %d of %d seeds failed, first %d", report.Failed, report.Seeds, first.Seed)
}

// traceSeed prints every message of a seed.
func traceSeed(out io.Writer, o chaos.Options) error {
	r, err := chaos.Run(o.First, chaos.NewPlan(o.First, o.Swarm), func(s runtime.SimStep) {
		fmt.Fprintf(out, "%s %s %s\n", s.At.Format("15:04:05.000000"), s.Actor, s.Message)
	})
	if err != nil {
		return fmt.Errorf("simulate: %w", err)
	}
	fmt.Fprintln(out, "plan:")
	for _, step := range r.Plan.Steps {
		fmt.Fprintln(out, " ", step)
	}
	for _, v := range r.Violations {
		fmt.Fprintln(out, v)
	}
	if !r.OK() {
		return fmt.Errorf("simulate: seed %d failed", o.First)
	}
	return nil
}

// reportTable prints a campaign. An equal hash of all traces shows that two machines simulated the
// same.
func reportTable(c *cli.Columns, r *chaos.Report) {
	c.Row("SEEDS", "FAILED", "MESSAGES", "CHANGES OF VPP", "READS", "SLOWEST", "HASH")
	c.Row(r.Seeds, r.Failed, r.Steps, r.Writes, r.Reads, r.Slowest.Round(time.Millisecond), r.Hash)
	c.Section("Injected faults")
	for _, name := range slices.Sorted(maps.Keys(r.Struck)) {
		c.Row(r.Struck[name], name)
	}
	if len(r.Failures) == 0 {
		return
	}
	c.Section("Failed seeds")
	for _, f := range r.Failures {
		c.Row(f.Seed, f.Violations[0])
	}
}
