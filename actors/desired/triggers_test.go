package desired

import (
	"slices"
	"testing"
	"time"

	"github.com/troupe-vpp/troupe/actors/report"
	"github.com/troupe-vpp/troupe/messages"
)

// stampedInput is an input with slices that were stamped at these seconds.
func stampedInput(seconds ...int64) *messages.ServiceInput {
	in := &messages.ServiceInput{}
	for _, at := range seconds {
		in.Slices = append(in.Slices, &messages.EndpointSlice{Triggered: at * int64(time.Second)})
	}
	return in
}

// latencies collects what an observer gets.
type latencies struct {
	report.None
	got []report.Programming
}

func (l *latencies) Programmed(p report.Programming) { l.got = append(l.got, p) }

func TestTriggersCountEachChangeOnce(t *testing.T) {
	var tr triggers
	var o latencies
	now := time.Unix(100, 0)
	tr.take(stampedInput(90, 80), true)
	tr.report(&o, now, 7)
	if len(o.got) != 0 {
		t.Errorf("what was there before counts: %v", o.got)
	}
	tr.take(stampedInput(95, 80), false)
	six := stampedInput(95, 98)
	six.Slices[1].Family = messages.IPFamily_IPV6
	tr.take(six, false)
	tr.report(&o, now, 7)
	tr.report(&o, now, 7)
	if want := []report.Programming{{Latency: 5 * time.Second, Cause: 7}, {Latency: 2 * time.Second, IPv6: true, Cause: 7}}; !slices.Equal(o.got, want) {
		t.Errorf("latencies %v, want %v", o.got, want)
	}
	tr.take(stampedInput(99), false)
	tr.drop()
	tr.report(nil, now, 7)
	if tr.report(&o, now, 7); len(o.got) != 2 {
		t.Errorf("a change that means nothing here counts: %v", o.got)
	}
}
