package nat44

import (
	"time"

	"github.com/troupe-vpp/troupe/actors/runtime"
)

// VPP forwards nothing while it changes access lists. So they rest for restFactor times as long as
// the work took, and changes that come meanwhile are made together. Missing lists rest for
// longestWait at most, because rows wait for them. Work that needs a rest longer than longestRest
// was slow for another reason than the lists.
const (
	restFactor  = 20
	longestWait = time.Second
	longestRest = 10 * time.Second
)

// rests are the last work on each object of the access lists, and the rest after it. Except for the
// method after, it is plain data.
type rests map[object]*rested

// rested is the work on one object and, as a message, the end of the rest.
type rested struct {
	object object
	began  time.Time // of the work; zero = it is about to begin
	ended  bool      // the work has
	timed  bool      // the message is under way
}

// begin notes that work on an object begins.
func (r rests) begin(k object) { r[k] = &rested{object: k} }

// end notes that it has ended: the object rests.
func (r rests) end(k object) {
	if work := r[k]; work != nil {
		work.ended = true
	}
}

// resting reports whether an object may not be worked on.
func (r rests) resting(k object) bool { return r[k] != nil && r[k].ended }

// over notes the end of a rest.
func (r rests) over(m *rested) {
	if r[m.object] == m {
		delete(r, m.object)
	}
}

// after measures work that has begun or ended with the present message.
func (r rests) after(c *runtime.Context) {
	for _, k := range []object{missingLists, extraLists} {
		longest := longestRest
		if k == missingLists {
			longest = longestWait
		}
		switch work := r[k]; {
		case work == nil || work.timed:
		case work.began.IsZero():
			work.began = c.Now()
		case work.ended:
			work.timed = true
			c.After(min(longest, restFactor*c.Now().Sub(work.began)), work)
		}
	}
}
