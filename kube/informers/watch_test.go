package informers

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/watch"
)

// TestObservedWatch: events pass, errors are seen on the way, and the goroutine ends with the watch, whichever side ends it (goleak checks).
func TestObservedWatch(t *testing.T) {
	failures := make(chan watch.Event, 1)
	inner := watch.NewFakeWithOptions(watch.FakeOptions{ChannelSize: 2})
	o := observe(inner, func(e watch.Event) { failures <- e })
	inner.Add(&corev1.Node{})
	if e := <-o.ResultChan(); e.Type != watch.Added {
		t.Errorf("event %v", e)
	}
	status := apierrors.NewResourceExpired("old").Status()
	inner.Error(&status)
	if e := <-o.ResultChan(); e.Type != watch.Error || len(failures) != 1 {
		t.Errorf("event %v, %d errors seen", e, len(failures))
	}
	inner.Stop()
	if _, open := <-o.ResultChan(); open {
		t.Error("open after the server ended it")
	}
	o.Stop()

	inner = watch.NewFakeWithOptions(watch.FakeOptions{ChannelSize: 2})
	o = observe(inner, func(watch.Event) {})
	inner.Add(&corev1.Node{}) // without a reader
	o.Stop()
	o.Stop()
	for range o.ResultChan() { //nolint:revive // it is enough that it ends
	}
}
