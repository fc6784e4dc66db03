package render

import (
	"cmp"
	"errors"
	"maps"
	"slices"

	"github.com/troupe-vpp/troupe/vpp/heap"
	"github.com/troupe-vpp/troupe/vpp/link"
)

// Refused objects are tried again with a back-off that grows to half a minute, so that VPP does not
// get a thousand rows again and again. When the cause is gone, half a minute is long. So each kind
// of refusal is a circuit breaker: at every tick one of its objects is tried as a half-open probe,
// in turn. When VPP accepts it, two others follow at once, then four, until one is refused.

// refusal is a kind of refusal: the request and VPP's answer. The zero value is every other kind.
type refusal struct {
	message string
	retval  int32
}

// compare orders kinds of refusals.
func (r refusal) compare(o refusal) int {
	return cmp.Or(cmp.Compare(r.message, o.message), cmp.Compare(r.retval, o.retval))
}

// refusalOf returns the kind of refusal of an error.
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

// probe puts one object of each kind of refusal into the queue, unless another one of that kind is
// being tried.
func (q *queue[K]) probe() {
	candidates := map[refusal][]K{}
	busy := map[refusal]bool{}
	for k, f := range q.failed {
		switch {
		case q.dirty[k].state != held:
			busy[f.refusal] = true
		case classOf(f.err) == classRetry: // another one would end the same way, or VPP has to be read first
			candidates[f.refusal] = append(candidates[f.refusal], k)
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
	slices.SortFunc(chosen, q.wishes.Compare)
	for _, k := range chosen {
		q.list(k)
	}
}

// turn is the object after the last probed one.
func (q *queue[K]) turn(c refusal, all []K) K {
	if last, had := q.probed[c]; had {
		if later := slices.DeleteFunc(slices.Clone(all), func(k K) bool { return q.wishes.Compare(k, last) <= 0 }); len(later) > 0 {
			all = later
		}
	}
	return slices.MinFunc(all, q.wishes.Compare)
}

// release puts some objects of one kind of refusal into the queue.
func (q *queue[K]) release(c refusal, most int) {
	var waiting []K
	for k, f := range q.failed {
		if f.refusal == c && q.dirty[k].state == held {
			waiting = append(waiting, k)
		}
	}
	slices.SortFunc(waiting, q.wishes.Compare)
	for _, k := range waiting[:min(len(waiting), most)] {
		q.list(k)
	}
}

// asBefore reports whether a probe was refused as before.
func (q *queue[K]) asBefore(k K, err error) bool {
	f := q.failed[k]
	return err != nil && f != nil && f.probe && f.refusal == refusalOf(err)
}
