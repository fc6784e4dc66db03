package informers

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/troupe-vpp/troupe/kube/apiserver"
)

// brief is the duration below which a watch that ends without an event has failed. client-go has
// the same limit, and backs off for up to a minute after such a watch.
const brief = time.Second

// errBrief is the error of an API server that accepts watches and ends them at once.
var errBrief = errors.New("watches end at once, without an event")

// sight decides when a resource counts as watched. It does so from the API server's answer to the
// watch request, because the first event may come minutes later, or never if nothing changes. After
// a brief watch, the next watch counts from its first event, or when it is no longer brief. A
// second brief watch in a row is a failure.
type sight struct {
	counts   func() // the resource is watched
	doubtful atomic.Bool
}

// observed is a watch that finds the error with which it ends. The reflector swallows most errors.
type observed struct {
	watch.Interface
	sight  *sight
	failed func(error)
	out    chan watch.Event
	done   chan struct{} // closed by stop
	stop   func()
}

// observe passes the events of a new watch on until it is stopped or ends; its goroutine ends with
// it. It calls failed with the error that ends the watch. The API server ends each watch without an
// error every few minutes.
func (s *sight) observe(w watch.Interface, failed func(error)) watch.Interface {
	o := &observed{Interface: w, sight: s, failed: failed, out: make(chan watch.Event), done: make(chan struct{})}
	o.stop = sync.OnceFunc(func() { close(o.done) })
	if !s.doubtful.Load() {
		s.counts()
	}
	go o.run()
	return o
}

// run passes events until the inner watch ends or the reader stops it. client-go's own watch.Filter
// would hang in the second case.
func (o *observed) run() {
	defer close(o.out)
	proof := time.NewTimer(brief)
	defer proof.Stop()
	proved := false
	for {
		select {
		case event, more := <-o.Interface.ResultChan():
			var broken error
			if w, ok := o.Interface.(*apiserver.Watch); ok && (!more || event.Type == watch.Error) {
				broken = w.Broken()
			}
			if !more || broken != nil {
				// For the reflector this is a normal end: it watches again from the last version.
				o.end(broken, proved, proof.C)
				return
			}
			proved = true
			if event.Type == watch.Error {
				o.failed(apierrors.FromObject(event.Object))
			} else {
				o.sight.prove()
			}
			select {
			case o.out <- event:
			case <-o.done:
				return
			}
		case <-proof.C:
			proved = true
			o.sight.prove()
		case <-o.done:
			return
		}
	}
}

// end reports the error that ended the watch. It delays the end of a brief watch until brief has
// passed, so that the reflector does not back off.
func (o *observed) end(broken error, proved bool, proof <-chan time.Time) {
	if !proved && o.sight.doubtful.Swap(true) && broken == nil {
		broken = errBrief
	}
	if broken != nil {
		o.failed(broken)
	}
	if !proved {
		select {
		case <-proof:
		case <-o.done:
		}
	}
}

// prove makes the resource count as watched, if that was in doubt.
func (s *sight) prove() {
	if s.doubtful.Swap(false) {
		s.counts()
	}
}

func (o *observed) ResultChan() <-chan watch.Event { return o.out }

// Stop satisfies watch.Interface; it may be called more than once.
func (o *observed) Stop() {
	o.stop()
	o.Interface.Stop()
}
