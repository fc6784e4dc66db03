package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// part is something that can be measured of an agent that is ready. It leaves such an agent behind,
// unless it is the last one.
type part struct {
	name    string   // as -only takes it
	sources []string // where the services may come from; none = anywhere
	named   []string // more sources, if -only names the part
	measure func(n *node, o options, services int, out *figures) error
}

// packetsPart has to do something before the agent starts, too.
func packetsPart() part {
	return part{name: "packets", sources: []string{sourceFiles}, measure: (*node).packets}
}

// parts are all of them, in the order in which they are measured.
func parts() []part {
	return []part{
		// first, because a VPP that is replaced has no interfaces for it
		packetsPart(),
		{name: "bare", measure: (*node).bare},
		{name: "restart", measure: (*node).restart},
		{name: "vpp-restart", measure: (*node).replacedVPP},
		{name: "idle", measure: (*node).idle},
		// before endpoints drain, because the end of a drain is an operation, too
		{name: "big", sources: []string{sourceFeed}, measure: (*node).big},
		{name: "changes", sources: []string{sourceAPI, sourceFeed}, measure: (*node).changes},
		{name: "churn", sources: []string{sourceFeed}, measure: (*node).churn},
		kubeProxyPart(),
	}
}

// measure enters one repetition of the figures at one size.
func measure(ctx context.Context, p *programs, o options, services int, out *figures) (s status, err error) {
	n, err := newNode(ctx, p, o, services)
	if err != nil {
		return s, err
	}
	defer n.close()
	if err := errors.Join(n.startVPP(), n.setUp()); err != nil {
		return s, err
	}
	if p.vpp != "" && o.wants(packetsPart()) {
		if err := n.beforeAgent(services, out); err != nil {
			return s, fmt.Errorf("packets without the agent: %w", err)
		}
	}
	before, err := n.heap()
	if err != nil {
		return s, err
	}
	if err := n.start("start", services, out); err != nil {
		return s, err
	}
	after, err := n.heap()
	if err != nil {
		return s, err
	}
	out.add("VPP's heap for each service", services, "bytes", (after-before)/float64(services))
	if s, err = n.status(); err != nil {
		return s, err
	}
	for _, part := range parts() {
		if !o.wants(part) {
			continue
		}
		if err := part.measure(n, o, services, out); err != nil {
			return s, fmt.Errorf("%s: %w", part.name, err)
		}
	}
	return s, nil
}

// start starts the agent, and enters its figures under the name of this start.
func (n *node) start(name string, services int, out *figures) error {
	if err := n.startAgent(); err != nil {
		return err
	}
	if err := n.ready(); err != nil {
		return err
	}
	took := time.Since(n.launched)
	used, err := cpu(n.agent.Process.Pid)
	if err != nil {
		return err
	}
	made, err := n.operations()
	if err != nil {
		return err
	}
	rendered, err := n.sinceSnapshot()
	if err != nil {
		return err
	}
	out.add(name+" to ready", services, "s", took.Seconds())
	out.add(name+": snapshot to ready", services, "s", rendered.Seconds())
	out.add(name+": CPU for each service", services, "µs", float64(used.Microseconds())/float64(services))
	out.add(name+": operations on VPP", services, "", made)
	return nil
}

// sinceSnapshot is the time from the first complete snapshot of the source, when informers have
// synced, until the agent was ready, as its events say.
func (n *node) sinceSnapshot() (took time.Duration, err error) {
	var page struct {
		Items []struct {
			Time       time.Time `json:"time"`
			Kind, Text string
		} `json:"items"`
	}
	body, err := n.get("/api/v1/events?limit=1000")
	if err == nil {
		err = json.Unmarshal(body, &page)
	}
	if err != nil {
		return 0, err
	}
	var synced, ready time.Time
	for _, e := range page.Items { // the last one comes first
		switch {
		case e.Kind == "resync" && strings.HasPrefix(e.Text, "snapshot of "):
			synced = e.Time
		case e.Kind == "readiness" && e.Text == "ready":
			ready = e.Time
		}
	}
	if synced.IsZero() || ready.IsZero() {
		return 0, errors.New("events of the agent name no snapshot, or no readiness")
	}
	return ready.Sub(synced), nil
}

// restart kills the agent and starts it anew beside a VPP that holds everything.
func (n *node) restart(_ options, services int, out *figures) error {
	kill(n.agent)
	return n.start("restart", services, out)
}

// replacedVPP kills VPP and starts it anew; the time counts from when it answers.
func (n *node) replacedVPP(_ options, services int, out *figures) error {
	kill(n.vpp)
	if err := n.readiness("agent has noticed", http.StatusServiceUnavailable); err != nil {
		return err
	}
	if err := errors.Join(n.startVPP(), n.setUp()); err != nil {
		return err
	}
	began := time.Now()
	if err := n.ready(); err != nil {
		return err
	}
	out.add("VPP has its interface to ready", services, "s", time.Since(began).Seconds())
	return nil
}

// idle measures what the agent does and takes when there is nothing to do.
func (n *node) idle(o options, services int, out *figures) error {
	return n.rest("", n.agent.Process.Pid, o.idle, services, out)
}

// rest is idle of any process; the names of its figures begin with the prefix.
func (n *node) rest(prefix string, pid int, rest time.Duration, services int, out *figures) error {
	if rest == 0 {
		return nil
	}
	if err := n.pause(rest / 2); err != nil { // the work that the start has left behind
		return err
	}
	before, err := cpu(pid)
	if err != nil {
		return err
	}
	if err := n.pause(rest / 2); err != nil {
		return err
	}
	after, err := cpu(pid)
	if err != nil {
		return err
	}
	now, err := resident(pid, "VmRSS")
	if err != nil {
		return err
	}
	peak, err := resident(pid, "VmHWM")
	if err != nil {
		return err
	}
	out.add(prefix+"idle", services, "% of a core", 100*float64(after-before)/float64(rest/2))
	out.add(prefix+"memory at rest", services, "MiB", now)
	out.add(prefix+"memory at most", services, "MiB", peak)
	return nil
}

// pause waits, or returns why the command ends.
func (n *node) pause(d time.Duration) error {
	select {
	case <-n.Done():
		return n.Err()
	case <-time.After(d):
		return nil
	}
}
