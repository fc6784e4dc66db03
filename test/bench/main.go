package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
)

// options are the flags.
type options struct {
	source  string
	changes int
	sizes   []int
	repeat  int
	idle    time.Duration
	churn   time.Duration
	rate    int
	dual    bool
	inside  bool
	etcd    bool
	only    []string // names of parts; none = all
	output  string
}

// wants reports whether a part is to be measured.
func (o options) wants(p part) bool {
	named := slices.Contains(o.only, p.name)
	return (len(p.sources) == 0 || slices.Contains(p.sources, o.source)) && (len(o.only) == 0 || named) || named && slices.Contains(p.named, o.source)
}

// Where the services come from.
const (
	sourceFiles = "files"
	sourceAPI   = "api"
	sourceFeed  = "feed"
)

// result is the output as JSON.
type result struct {
	Machine machine  `json:"machine"`
	VPP     string   `json:"vpp"`
	Source  string   `json:"source"`
	Agent   string   `json:"agent"`
	Figures []figure `json:"figures"`
}

// machine is where the figures were measured.
type machine struct {
	CPU    string `json:"cpu"`
	Cores  int    `json:"cores"`
	Kernel string `json:"kernel"`
	Go     string `json:"go"`
}

func main() {
	if err := run(os.Args[1:], os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// run measures and prints.
func run(arguments []string, out, progress io.Writer) error {
	o, err := parse(arguments, progress)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	r := result{Machine: thisMachine(), Source: o.source}
	figures := newFigures()
	dir, err := os.MkdirTemp("", "bench") // short: paths of sockets are limited
	if err != nil {
		return fmt.Errorf("make directory: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	program, err := prepare(ctx, dir, o.etcd)
	if err != nil {
		return err
	}
	if o.wants(kubeProxyPart()) {
		if done, err := program.isolate(ctx, o, arguments, out, progress); done || err != nil {
			return err
		}
	}
	if program.vpp == "" && o.wants(packetsPart()) {
		fmt.Fprintln(progress, "packets are not measured: VPP is simulated")
	}
	var failed error // what has been measured before is printed
	for turn := range o.repeat {
		for _, size := range o.sizes {
			if failed != nil {
				break
			}
			fmt.Fprintf(progress, "%s repetition %d of %d: %d services\n", time.Now().Format(time.TimeOnly), turn+1, o.repeat, size)
			status, err := measure(ctx, program, o, size, figures)
			if err != nil {
				failed = fmt.Errorf("measure %d services: %w", size, err)
				continue
			}
			r.VPP, r.Agent = program.vppName(status.VPP), status.Version
		}
	}
	if r.Figures = figures.all(); o.output == "json" {
		encoder := json.NewEncoder(out)
		encoder.SetIndent("", "  ")
		return errors.Join(failed, encoder.Encode(r))
	}
	return errors.Join(failed, r.print(out))
}

// parse reads the flags.
func parse(arguments []string, usage io.Writer) (o options, err error) {
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(usage)
	flags.StringVar(&o.source, "source", sourceFiles, "where the services come from: files; api, "+
		"a real API server; or feed, the lists and watches of one, in this process. Changes are "+
		"measured with the last two, kube-proxy with api, and with feed if -only names it")
	flags.IntVar(&o.changes, "changes", 300, "how many endpoints are replaced one after the other, with -source api")
	sizes := flags.String("sizes", "1000,10000", "numbers of services")
	flags.IntVar(&o.repeat, "repeat", 3, "how often each size is measured")
	flags.DurationVar(&o.idle, "idle", time.Minute, "how long the agent has nothing to do before it is measured whether it does anything; 0 = not measured")
	flags.DurationVar(&o.churn, "churn", time.Minute, "for how long endpoints are replaced at a rate, twice, with -source feed")
	flags.IntVar(&o.rate, "rate", 2000, "how many endpoints are replaced in a second of -churn")
	flags.BoolVar(&o.dual, "dual", false, "services of both families, with -source feed")
	flags.BoolVar(&o.inside, "inside-role", true, "interfaces have both roles of NAT44 (nat44.insideRole)")
	flags.BoolVar(&o.etcd, "etcd", false, "an agent with an etcd in it, as on a lone node")
	var names []string
	for _, p := range parts() {
		names = append(names, p.name)
	}
	flags.Func("only", "what is measured after the start, of "+strings.Join(names, ", ")+", separated by commas; otherwise everything that the source allows", func(text string) error {
		o.only = strings.Split(text, ",")
		for _, name := range o.only {
			if !slices.Contains(names, name) {
				return fmt.Errorf("%q cannot be measured", name)
			}
		}
		return nil
	})
	flags.StringVar(&o.output, "o", "table", "table or json")
	if err := flags.Parse(arguments); err != nil {
		return o, err
	}
	for text := range strings.SplitSeq(*sizes, ",") {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > maxServices {
			return o, fmt.Errorf("-sizes %s: want numbers from 1 to %d", *sizes, maxServices)
		}
		o.sizes = append(o.sizes, n)
	}
	if o.repeat < 1 || o.changes < 1 || o.rate < 1 || o.rate > 4000 || o.churn > time.Minute || o.output != "table" && o.output != "json" || !slices.Contains([]string{sourceFiles, sourceAPI, sourceFeed}, o.source) || flags.NArg() > 0 {
		return o, fmt.Errorf("want -repeat and -changes from 1 on, -rate from 1 to 4000, -churn of a minute at most, -o table or json, -source files, api or feed, and no arguments")
	}
	return o, nil
}

// print writes a table.
func (r *result) print(out io.Writer) error {
	fmt.Fprintf(out, "agent %s, VPP %s, services from %s; %d cores of %s, Linux %s, %s\n\n", r.Agent, r.VPP, r.Source, r.Machine.Cores, r.Machine.CPU, r.Machine.Kernel, r.Machine.Go)
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "FIGURE\tSERVICES\tMEDIAN\tLEAST\tMOST\tUNIT\tTIMES")
	for _, f := range r.Figures {
		fmt.Fprintf(table, "%s\t%d\t%.4g\t%.4g\t%.4g\t%s\t%d\n", f.Name, f.Services, f.Median, f.Least, f.Most, f.Unit, len(f.Values))
	}
	return table.Flush()
}
