package actors

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/troupe-vpp/troupe/actors/runtime"
	"github.com/troupe-vpp/troupe/vpp/link"
)

// What VPP refused is tried again after a delay that grows to half a minute, or VPP would be asked for a thousand rows over and over again. When
// whatever was in the way has gone, that would be long. So every 900 ms (Timing.Retry) one of those that were refused in the same way is tried before its time,
// in turn. When VPP takes it, two others follow at once, then four, and so on as long as none is refused.

// manner is a way in which VPP refused something: what it was asked for, and its answer. The zero value is any other one.
type manner struct {
	message string
	retval  int32
}

// compare orders the ways in which something was refused.
func (m manner) compare(o manner) int {
	return cmp.Or(cmp.Compare(m.message, o.message), cmp.Compare(m.retval, o.retval))
}

// mannerOf is the way in which something was refused.
func mannerOf(err error) manner {
	var said *link.RetvalError
	if errors.As(err, &said) {
		return manner{said.Message, said.Retval}
	}
	return manner{}
}

// worthwhile reports whether it makes sense to ask for the same again before its time: not where that cannot end otherwise, and not where VPP has
// to be read for it.
func (f *failure) worthwhile() bool {
	k, _ := classify(f.err)
	return k == classRetry
}

// probe puts one thing of each manner of refusal into the queue, if none of them is being tried anyway.
func (b *backlog[K]) probe() {
	candidates := map[manner][]K{}
	busy := map[manner]bool{}
	for k, f := range b.failed {
		switch {
		case b.dirty[k]:
			busy[f.way] = true
		case f.worthwhile():
			candidates[f.way] = append(candidates[f.way], k)
		}
	}
	maps.DeleteFunc(b.probed, func(way manner, _ K) bool { return candidates[way] == nil })
	var chosen []K
	for way, all := range candidates {
		if !busy[way] {
			k := b.turn(way, all)
			b.failed[k].probe, b.probed[way] = true, k
			chosen = append(chosen, k)
		}
	}
	slices.SortFunc(chosen, b.order)
	for _, k := range chosen {
		b.list(k)
	}
}

// turn is whose turn it is: the next one after the last.
func (b *backlog[K]) turn(way manner, all []K) K {
	if last, had := b.probed[way]; had {
		if later := slices.DeleteFunc(slices.Clone(all), func(k K) bool { return b.order(k, last) <= 0 }); len(later) > 0 {
			all = later
		}
	}
	return slices.MinFunc(all, b.order)
}

// release puts some of those that were refused in the same way into the queue.
func (b *backlog[K]) release(way manner, most int) {
	var waiting []K
	for k, f := range b.failed {
		if f.way == way && !b.dirty[k] {
			waiting = append(waiting, k)
		}
	}
	slices.SortFunc(waiting, b.order)
	for _, k := range waiting[:min(len(waiting), most)] {
		b.list(k)
	}
}

// vain reports whether an operation has failed as was to be feared, which is no news.
func (b *backlog[K]) vain(k *K, err error) bool {
	if k == nil || err == nil {
		return false
	}
	f := b.failed[*k]
	return f != nil && f.probe && f.way == mannerOf(err)
}

// probeTick tries what was refused.
type probeTick struct{}

// probeLater waits until what was refused is tried; refused says whether anything is.
func (o *outlet) probeLater(c *runtime.Context, refused bool) {
	if refused && !o.probing {
		o.probing = true
		c.After(o.probeEvery(), &probeTick{})
	}
}

// probeEvery is the pause between two probes.
func (o *outlet) probeEvery() time.Duration { return max(o.deps.Timing.Retry, o.deps.Timing.Backoff) }
