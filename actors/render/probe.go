package render

import (
	"cmp"
	"errors"
	"maps"
	"slices"

	"github.com/troupe-vpp/troupe/actors/class"
	"github.com/troupe-vpp/troupe/vpp/heap"
	"github.com/troupe-vpp/troupe/vpp/link"
)

// Refused objects are tried again with a back-off that grows to half a minute, or VPP would be
// asked for a thousand rows over and over again. When the cause is gone that would be long. So each
// refusal class is a circuit breaker: at every tick one of its objects is tried as a half-open
// probe, in turn. When VPP takes it, two others follow at once, then four, and so on as long as
// none is refused.

// refusal is the class of a refusal: the request and VPP's answer. The zero value is any other one.
type refusal struct {
	message string
	retval  int32
}

// compare orders refusal classes.
func (r refusal) compare(o refusal) int {
	return cmp.Or(cmp.Compare(r.message, o.message), cmp.Compare(r.retval, o.retval))
}

// refusalOf is the class of an error.
func refusalOf(err error) refusal {
	var answer *link.RetvalError
	if errors.As(err, &answer) {
		return refusal{answer.Message, answer.Retval}
	}
	if errors.Is(err, heap.ErrLow) {
		return refusal{message: "memory"}
	}
	return refusal{}
}

// probeable reports whether a try before its time makes sense: not where it would end the same way,
// and not where VPP has to be read for it.
func (f *failure) probeable() bool {
	k, _ := class.Of(f.err)
	return k == class.Retry
}

// probe puts one object of each refusal class into the queue, unless one of them is being tried
// anyway.
func (q *queue[K]) probe() {
	candidates := map[refusal][]K{}
	busy := map[refusal]bool{}
	for k, f := range q.failed {
		switch {
		case q.dirty[k].state != held:
			busy[f.class] = true
		case f.probeable():
			candidates[f.class] = append(candidates[f.class], k)
		}
	}
	maps.DeleteFunc(q.probed, func(c refusal, _ K) bool { return candidates[c] == nil })
	var chosen []K
	for c, all := range candidates {
		if !busy[c] {
			k := q.turn(c, all)
			q.failed[k].probe, q.probed[c] = true, k
			chosen = append(chosen, k)
		}
	}
	slices.SortFunc(chosen, q.adapter.Compare)
	for _, k := range chosen {
		q.list(k)
	}
}

// turn is the object after the one that was probed last.
func (q *queue[K]) turn(c refusal, all []K) K {
	if last, had := q.probed[c]; had {
		if later := slices.DeleteFunc(slices.Clone(all), func(k K) bool { return q.adapter.Compare(k, last) <= 0 }); len(later) > 0 {
			all = later
		}
	}
	return slices.MinFunc(all, q.adapter.Compare)
}

// release puts some objects of a refusal class into the queue.
func (q *queue[K]) release(c refusal, most int) {
	var waiting []K
	for k, f := range q.failed {
		if f.class == c && q.dirty[k].state == held {
			waiting = append(waiting, k)
		}
	}
	slices.SortFunc(waiting, q.adapter.Compare)
	for _, k := range waiting[:min(len(waiting), most)] {
		q.list(k)
	}
}

// asBefore reports whether a probe was refused as before, which is no news.
func (q *queue[K]) asBefore(k K, err error) bool {
	f := q.failed[k]
	return err != nil && f != nil && f.probe && f.class == refusalOf(err)
}
