package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// calm is how long VPP has answered no change of a row when the next endpoint is replaced.
const calm = 30 * time.Millisecond

// changer is a source whose services can change.
type changer interface {
	// replace gives the first endpoint of a service another address.
	replace(ctx context.Context, service int, address string) error
}

// proxied returns the proxy before VPP's API socket. The agent that it starts at the first call
// uses the proxy.
func (n *node) proxied() (p *proxy, err error) {
	if n.proxy != nil {
		return n.proxy, nil
	}
	kill(n.agent)
	if n.proxy, err = newProxy(n.vppSocket, n.file("proxy.sock")); err != nil {
		return nil, err
	}
	n.vppSocket = n.file("proxy.sock")
	return n.proxy, errors.Join(n.startAgent(), n.ready())
}

// changes replaces endpoints of services one after the other. It measures the time from the request
// to the API server until VPP has answered the first change of a row. The watch of another client
// shows how much of this time a real API server takes.
func (n *node) changes(o options, services int, out *figures) error {
	p, err := n.proxied()
	if err != nil {
		return err
	}
	seen := func(string) time.Time { return time.Time{} }
	if n.cluster != nil {
		stream, err := n.cluster.watch(n)
		if err != nil {
			return err
		}
		defer stream.Stop()
		seen = arrivals(stream.ResultChan())
	}
	var answered, watched []time.Duration
	for i := range o.changes {
		p.calm(calm)
		began := time.Now()
		address, err := n.replace(i, services)
		if err != nil {
			return err
		}
		answer, err := p.answer(n)
		if err != nil {
			return err
		}
		answered = append(answered, answer.Sub(began))
		if at := seen(address); !at.IsZero() {
			watched = append(watched, at.Sub(began))
		}
	}
	out.addTimes("change to VPP's answer", services, answered)
	if len(watched) > 0 {
		out.addTimes("change to the event of a watch", services, watched)
	}
	return nil
}

// replace replaces the first endpoint of the service whose turn it is, and returns its new address.
func (n *node) replace(turn, services int) (address string, err error) {
	address = fmt.Sprintf("10.31.%d.%d", turn/250, 1+turn%250)
	if err := n.source.(changer).replace(n, turn*7919%services, address); err != nil {
		return "", fmt.Errorf("replace endpoint: %w", err)
	}
	return address, nil
}

// addTimes enters the quantiles of times.
func (f *figures) addTimes(name string, services int, times []time.Duration) {
	for _, part := range []float64{0.5, 0.9, 0.99} {
		f.add(fmt.Sprintf("%s, p%g", name, 100*part), services, "ms", quantile(times, part).Seconds()*1000)
	}
}

// arrivals notes when a watch brings each first address of a slice. The returned function waits for
// one; a watch that has ended brings it at no time.
func arrivals(events <-chan watch.Event) func(address string) time.Time {
	type arrival struct {
		address string
		at      time.Time
	}
	all := make(chan arrival, 1000) // more than there are at a time
	go func() {
		defer close(all)
		for event := range events {
			if slice, is := event.Object.(*discoveryv1.EndpointSlice); is {
				all <- arrival{slice.Endpoints[0].Addresses[0], time.Now()}
			}
		}
	}()
	return func(address string) time.Time {
		for one := range all {
			if one.address == address {
				return one.at
			}
		}
		return time.Time{}
	}
}

// quantile returns the value below which that part of the values is.
func quantile(values []time.Duration, part float64) time.Duration {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[min(int(math.Ceil(part*float64(len(sorted)))), len(sorted))-1]
}
