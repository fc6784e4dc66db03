package main

import (
	"fmt"
	"net/netip"
	"time"
)

// many is a run of many changes a second.
type many struct {
	services int
	sent     map[[4]byte]sent
	order    map[int][][4]byte // the addresses that a service has had, in order
}

// sent is one change.
type sent struct {
	service int
	at      time.Time
}

// churn replaces endpoints at a rate that no person sees through: of all services in turn, and of
// ten of them.
func (n *node) churn(o options, services int, out *figures) error {
	p, err := n.proxied()
	if err != nil {
		return err
	}
	const hot = 10
	for i, of := range []struct {
		name     string
		services int
	}{{"spread", services}, {"hot", min(hot, services)}} {
		p.calm(calm)
		before, err := cpu(n.agent.Process.Pid)
		if err != nil {
			return err
		}
		m, took, err := n.replaceMany(o, of.services, i)
		if err != nil {
			return err
		}
		answers := p.settled()
		after, err := cpu(n.agent.Process.Pid)
		if err != nil {
			return err
		}
		times, coalesced, err := m.times(answers)
		if err != nil {
			return err
		}
		name := fmt.Sprintf("%d changes/s, %s", o.rate, of.name)
		out.addTimes(name, services, times)
		out.add(name+": sent", services, "changes/s", float64(len(m.sent))/took.Seconds())
		out.add(name+": coalesced", services, "%", 100*float64(coalesced)/float64(len(m.sent)))
		out.add(name+": CPU", services, "% of a core", 100*float64(after-before)/float64(took))
	}
	return nil
}

// replaceMany replaces endpoints of so many services for the time that the options say.
func (n *node) replaceMany(o options, services, run int) (m *many, took time.Duration, err error) {
	m = &many{sent: map[[4]byte]sent{}, order: map[int][][4]byte{}}
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	began := time.Now()
	for i := 0; time.Since(began) < o.churn; <-tick.C {
		for ; i < int(time.Since(began).Seconds()*float64(o.rate)); i++ {
			const each, byte2 = 250, 62_500 // no address comes twice
			address := netip.AddrFrom4([4]byte{10, byte(16 + 4*run + i/byte2), byte(i / each % each), byte(1 + i%each)})
			service := i % services
			at := time.Now()
			if err := n.source.(changer).replace(n, service, address.String()); err != nil {
				return nil, 0, fmt.Errorf("replace endpoint: %w", err)
			}
			m.sent[address.As4()] = sent{service, at}
			m.order[service] = append(m.order[service], address.As4())
		}
	}
	return m, time.Since(began), nil
}

// times returns how long each change took until VPP had answered it, or a later one of the same
// service, and how many VPP has never seen for that reason.
func (m *many) times(answers []answer) (times []time.Duration, coalesced int, err error) {
	at := map[[4]byte]time.Time{}
	for _, a := range answers {
		at[a.added] = a.at
	}
	for service, addresses := range m.order {
		var answered time.Time
		for i := len(addresses) - 1; i >= 0; i-- {
			own, is := at[addresses[i]]
			if !is {
				coalesced++
			} else if answered.IsZero() || own.Before(answered) {
				answered = own
			}
			if answered.IsZero() {
				return nil, 0, fmt.Errorf("VPP never got the last endpoint of service %d", service)
			}
			times = append(times, answered.Sub(m.sent[addresses[i]].at))
		}
	}
	return times, coalesced, nil
}
