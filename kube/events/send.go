package events

import (
	"context"
	"time"

	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// job is a copy of a series that is being written.
type job struct {
	id          identity
	first, last time.Time
	count, base int
	written     bool
	found       bool
	quiet       bool // content if the API server has it already
}

// unknownBase says that the API server has the event, with a count that is not known here.
const unknownBase = -1

// job copies what is to be written.
func (s *series) job() *job {
	return &job{
		id: s.id, first: s.first, last: s.last, count: s.count, base: s.base, written: s.written, found: s.found,
		quiet: s.standing || s.id.shared,
	}
}

// result is what became of a job.
type result struct {
	verdict verdict
	err     error
	pause   time.Duration // the server wants to be left alone for so long; 0 = it did not say
	base    int           // what the API server counts besides the observations of this run
	found   bool          // the API server has the event, and base is right, whatever the verdict
	adopted bool          // the API server had all of it, and nothing was written
}

func resultOf(err error) result {
	v, pause := judge(err)
	return result{verdict: v, err: err, pause: pause}
}

// send writes one event: at first it creates, later it raises the count. Three requests at most. A request that got no answer may have
// been carried out; everything here can be repeated without counting twice.
func (w *Writer) send(ctx context.Context, j *job) result {
	if !j.written || j.id.shared {
		r := w.create(ctx, j, j.count)
		switch {
		case r.verdict == exists && j.quiet:
			return result{verdict: accepted, base: unknownBase, adopted: true}
		case r.verdict != exists:
			return r
		}
		j.base = unknownBase
	}
	if j.base == unknownBase {
		// An empty patch reads the object with no other right than the one to patch, and changes nothing.
		e, r := w.patch(ctx, j, []byte("{}"))
		switch r.verdict {
		case accepted:
		case missing:
			return w.createAgain(ctx, j, j.count)
		default:
			return r
		}
		told := countOf(e)
		if j.base = j.baseOf(e); told >= j.base+j.count {
			return result{verdict: accepted, base: j.base, adopted: true}
		}
	}
	_, r := w.patch(ctx, j, seriesPatch(j.base+j.count, j.last))
	if r.verdict == missing { // its time to live is over
		r = w.createAgain(ctx, j, j.base+j.count)
	}
	r.base, r.found = j.base, true
	return r
}

// countOf is how many observations an object stands for.
func countOf(e *eventsv1.Event) int {
	if e.Series == nil {
		return 1
	}
	return int(e.Series.Count)
}

// baseOf is how many of its observations are not ours. An object that was first observed when we observed it first is our own: a creation
// of ours that got no answer.
func (j *job) baseOf(e *eventsv1.Event) int {
	switch {
	case e.EventTime.Truncate(time.Microsecond).Equal(j.first.Truncate(time.Microsecond)):
		return 0
	case j.found: // our first observation was the state that the object tells
		return countOf(e) - 1
	}
	return countOf(e)
}

// create creates the object. Where the namespace is missing it is refused for good.
func (w *Writer) create(ctx context.Context, j *job, count int) result {
	ctx, cancel := context.WithTimeout(ctx, w.cfg.Timeout)
	defer cancel()
	e := j.object(w.instance, count)
	_, err := w.client.EventsV1().Events(e.Namespace).Create(ctx, e, metav1.CreateOptions{})
	r := resultOf(err)
	if r.verdict == missing {
		r.verdict = refused
	}
	return r
}

// createAgain creates an object that was not there a moment ago. If it is there by now, the next try will find it.
func (w *Writer) createAgain(ctx context.Context, j *job, count int) result {
	r := w.create(ctx, j, count)
	if r.verdict == exists {
		r.verdict = later
	}
	return r
}

func (w *Writer) patch(ctx context.Context, j *job, patch []byte) (*eventsv1.Event, result) {
	ctx, cancel := context.WithTimeout(ctx, w.cfg.Timeout)
	defer cancel()
	name := objectName(&j.id, w.instance)
	e, err := w.client.EventsV1().Events(namespaceOf(&j.id.object)).Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{})
	return e, resultOf(err)
}
