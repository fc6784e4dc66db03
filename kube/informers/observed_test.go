package informers

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/watch"
)

// TestObservedWatch: events pass, errors are reported, and the goroutine ends with the watch,
// whichever side ends it (goleak checks this).
func TestObservedWatch(t *testing.T) {
	s := &sight{counts: func() {}}
	failures := make(chan error, 1)
	inner := watch.NewFakeWithOptions(watch.FakeOptions{ChannelSize: 2})
	o := s.observe(inner, func(err error) { failures <- err })
	inner.Add(&corev1.Node{})
	if e := <-o.ResultChan(); e.Type != watch.Added {
		t.Errorf("event %v", e)
	}
	status := apierrors.NewResourceExpired("old").Status()
	inner.Error(&status)
	if e := <-o.ResultChan(); e.Type != watch.Error || !apierrors.IsResourceExpired(<-failures) {
		t.Errorf("event %v", e)
	}
	inner.Stop()
	if _, open := <-o.ResultChan(); open {
		t.Error("open after the server ended it")
	}
	o.Stop()

	inner = watch.NewFakeWithOptions(watch.FakeOptions{ChannelSize: 2})
	o = s.observe(inner, func(err error) { t.Error(err) })
	inner.Add(&corev1.Node{}) // without a reader
	o.Stop()
	o.Stop()
	for range o.ResultChan() { //nolint:revive // it is enough that it ends
	}
}

// TestBriefWatch: a watch counts from its answer. If it ends at once without an event, the
// reflector sees the end later, so that it does not back off. The next watch counts from its first
// event, or when it has lasted; it is a failure if it ends at once too.
func TestBriefWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var said []string
		begun := time.Now()
		say := func(text string) {
			synctest.Wait()
			said = append(said, fmt.Sprintf("%s %s", time.Since(begun), text))
		}
		s := &sight{counts: func() { said = append(said, fmt.Sprintf("%s counts", time.Since(begun))) }}
		failed := func(err error) {
			if !errors.Is(err, errBrief) {
				t.Error(err)
			}
			said = append(said, fmt.Sprintf("%s failed", time.Since(begun)))
		}
		watched := func() (*watch.FakeWatcher, watch.Interface) {
			inner := watch.NewFakeWithOptions(watch.FakeOptions{ChannelSize: 2})
			return inner, s.observe(inner, failed)
		}
		for range 2 {
			inner, o := watched()
			inner.Stop()
			<-o.ResultChan()
			say("ended")
		}
		inner, o := watched()
		inner.Add(&corev1.Node{})
		<-o.ResultChan()
		say("event")
		inner.Stop()
		<-o.ResultChan()
		say("ended")
		inner, o = watched()
		inner.Stop()
		synctest.Wait()
		o.Stop() // the reader does not wait for the end
		<-o.ResultChan()
		say("stopped")
		inner, o = watched()
		time.Sleep(time.Minute)
		inner.Stop()
		<-o.ResultChan()
		say("ended")
		want := []string{
			"0s counts", "1s ended", "1s failed", "2s ended", "2s counts", "2s event", "2s ended", "2s counts", "2s stopped",
			"3s counts", "1m2s ended",
		}
		if !slices.Equal(said, want) {
			t.Errorf("it went\n%q, want\n%q", said, want)
		}
	})
}
