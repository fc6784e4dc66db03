package main

import (
	"context"
	"net/http"
	"time"
)

// measure enters one repetition of all figures at one size.
func measure(ctx context.Context, p *programs, services int, idle time.Duration, out *figures) (s status, err error) {
	n, err := newNode(ctx, p, services)
	if err != nil {
		return s, err
	}
	defer n.close()
	if err := n.startVPP(); err != nil {
		return s, err
	}
	if err := n.first(services, out); err != nil {
		return s, err
	}
	if s, err = n.status(); err != nil {
		return s, err
	}
	for _, step := range []func(int, *figures) error{n.again, n.replacedVPP} {
		if err := step(services, out); err != nil {
			return s, err
		}
	}
	return s, n.idle(services, idle, out)
}

// first starts the agent beside an empty VPP.
func (n *node) first(services int, out *figures) error {
	took, err := n.untilReady()
	if err != nil {
		return err
	}
	used, err := cpu(n.agent.Process.Pid)
	if err != nil {
		return err
	}
	made, err := n.operations()
	if err != nil {
		return err
	}
	out.add("start to ready", services, "s", took.Seconds())
	out.add("CPU until ready for each service", services, "µs", float64(used.Microseconds())/float64(services))
	out.add("operations on VPP at the start", services, "", made)
	return nil
}

// untilReady starts the agent and waits until it is ready.
func (n *node) untilReady() (time.Duration, error) {
	if err := n.startAgent(); err != nil {
		return 0, err
	}
	err := n.ready()
	return time.Since(n.launched), err
}

// again kills the agent and starts it anew beside a VPP that holds everything.
func (n *node) again(services int, out *figures) error {
	kill(n.agent)
	took, err := n.untilReady()
	if err != nil {
		return err
	}
	made, err := n.operations()
	if err != nil {
		return err
	}
	out.add("restart to ready", services, "s", took.Seconds())
	out.add("operations on VPP at a restart", services, "", made)
	return nil
}

// replacedVPP kills VPP and starts it anew; the time counts from when it answers.
func (n *node) replacedVPP(services int, out *figures) error {
	kill(n.vpp)
	if err := n.readiness("agent has noticed", http.StatusServiceUnavailable); err != nil {
		return err
	}
	if err := n.startVPP(); err != nil {
		return err
	}
	began := time.Now()
	if err := n.ready(); err != nil {
		return err
	}
	out.add("VPP answers to ready", services, "s", time.Since(began).Seconds())
	return nil
}

// idle measures what the agent does and takes when there is nothing to do.
func (n *node) idle(services int, rest time.Duration, out *figures) error {
	if rest == 0 {
		return nil
	}
	pid := n.agent.Process.Pid
	select {
	case <-n.Done():
		return n.Err()
	case <-time.After(rest / 2): // what the start has left behind
	}
	before, err := cpu(pid)
	if err != nil {
		return err
	}
	select {
	case <-n.Done():
		return n.Err()
	case <-time.After(rest / 2):
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
	out.add("idle", services, "% of a core", 100*float64(after-before)/float64(rest/2))
	out.add("memory at rest", services, "MiB", now)
	out.add("memory at most", services, "MiB", peak)
	return nil
}
