package main

import (
	"fmt"
	"net/netip"
	"time"
)

// many is a run of many changes a second. Addresses are those of endpoints; none comes twice.
type many struct {
	sent     map[[4]byte]time.Time
	order    map[int][][4]byte     // that a service has had, in order
	answered map[[4]byte]time.Time // by VPP
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
		after, err := cpu(n.agent.Process.Pid)
		if err != nil {
			return err
		}
		if err := m.wait(n, p); err != nil {
			return err
		}
		times, coalesced := m.times()
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
	m = &many{sent: map[[4]byte]time.Time{}, order: map[int][][4]byte{}}
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
			m.sent[address.As4()] = at
			m.order[service] = append(m.order[service], address.As4())
		}
	}
	return m, time.Since(began), nil
}

// wait waits until VPP has got the last endpoint of each service.
func (m *many) wait(n *node, p *proxy) error {
	missing := map[[4]byte]bool{}
	for _, addresses := range m.order {
		missing[addresses[len(addresses)-1]] = true
	}
	m.answered = map[[4]byte]time.Time{}
	return n.await("VPP has the last endpoint of each service", func() bool {
		for _, answer := range p.take() {
			m.answered[answer.added] = answer.at
			delete(missing, answer.added)
		}
		return len(missing) == 0
	})
}

// times returns how long each change took until VPP had answered it, or a later one of the same
// service, and how many VPP has never seen for that reason.
func (m *many) times() (times []time.Duration, coalesced int) {
	for _, addresses := range m.order {
		var answered time.Time
		for i := len(addresses) - 1; i >= 0; i-- {
			own := m.answered[addresses[i]]
			if own.IsZero() {
				coalesced++
			} else if answered.IsZero() || own.Before(answered) {
				answered = own
			}
			times = append(times, answered.Sub(m.sent[addresses[i]]))
		}
	}
	return times, coalesced
}
