package events

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// node is a running Writer in virtual time.
type node struct {
	*Writer
	logged *bytes.Buffer
	stop   func()
}

// run starts a Writer with a server and with events that wait for it; the caller is in a bubble.
// The Writer ends with the test, or with stop.
func run(t *testing.T, server *apiServer, cfg Config, waiting ...Event) *node {
	t.Helper()
	if cfg.NodeName == "" {
		cfg.NodeName = "n1"
	}
	n := &node{logged: &bytes.Buffer{}}
	n.Writer = New(server.Client(), cfg, slog.New(slog.NewTextHandler(n.logged, nil)))
	for _, e := range waiting {
		n.Record(e)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- n.Run(ctx) }()
	n.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	t.Cleanup(n.stop)
	return n
}

// after lets virtual time pass, and waits until everything due has happened.
func after(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// on makes an event on another service.
func on(service, note string) Event {
	e := event(note)
	e.Object = ServiceObject("default/"+service, "uid-"+service)
	return e
}

func expect(t *testing.T, server *apiServer, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, server.lines(t)); diff != "" {
		t.Errorf("the server holds (-want +got):\n%s", diff)
	}
}

func TestAnEventReachesTheServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newAPIServer()
		n := run(t, server, Config{})
		n.Record(event("boom"))
		n.Record(Started("n1"))
		synctest.Wait()
		expect(t, server, "default/n1 Starting troupe serves the services of node n1 x1", "default/web FailedToRender boom x1")
		for _, e := range server.events(t) {
			if e.ReportingController != "troupe" || e.ReportingInstance != "troupe-n1" || !e.EventTime.Time.Equal(time.Now()) {
				t.Errorf("%+v", e)
			}
		}
		if diff := cmp.Diff(Stats{Recorded: 2, Written: 2}, n.Stats()); diff != "" {
			t.Errorf("stats (-want +got):\n%s", diff)
		}
	})
}

func TestEventsWaitForRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newAPIServer()
		w := New(server.Client(), Config{NodeName: "n1"}, slog.New(slog.DiscardHandler))
		w.Record(event("boom"))
		if server.count() != 0 || w.Stats().Waiting != 1 {
			t.Errorf("%d requests, %+v", server.count(), w.Stats())
		}
		ctx, cancel := context.WithCancel(t.Context())
		go func() { _ = w.Run(ctx) }()
		synctest.Wait()
		cancel()
		expect(t, server, "default/web FailedToRender boom x1")
	})
}

// TestRepetitionsAreJoined: an event that occurs again and again is written once in each interval.
func TestRepetitionsAreJoined(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newAPIServer()
		n := run(t, server, Config{ObjectInterval: 59500 * time.Millisecond})
		for range 100 {
			n.Record(event("boom"))
			after(time.Second)
		}
		after(2 * time.Minute)
		expect(t, server, "default/web FailedToRender boom x3")
		if server.count() != 3 {
			t.Errorf("%d requests", server.count())
		}
		times := map[time.Duration]bool{}
		for _, e := range server.events(t) {
			times[time.Since(e.EventTime.Time)] = true
		}
		// the first one, the first one after it, the first one after a minute
		if want := map[time.Duration]bool{220 * time.Second: true, 219 * time.Second: true, 160 * time.Second: true}; !maps.Equal(times, want) {
			t.Errorf("observed %v ago", times)
		}
	})
}

func TestWhatHappensDuringARequestIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newAPIServer()
		server.answer(func(string, string) error { time.Sleep(5 * time.Second); return nil }, nil)
		n := run(t, server, Config{ObjectInterval: time.Minute})
		n.Record(event("boom"))
		after(time.Second)
		n.Record(event("boom"))
		after(time.Second)
		n.Record(event("boom"))
		after(10 * time.Second)
		expect(t, server, "default/web FailedToRender boom x1")
		after(time.Minute)
		expect(t, server, "default/web FailedToRender boom x2")
	})
}

// TestNotesAreTold: two conflicts of one service are two events. The recorder of client-go would
// write one of them.
func TestNotesAreTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newAPIServer()
		n := run(t, server, Config{})
		n.Record(event("one"))
		n.Record(event("two"))
		synctest.Wait()
		expect(t, server, "default/web FailedToRender one x1", "default/web FailedToRender two x1")
	})
}

func TestARestartTellsNothingAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newAPIServer()
		first := run(t, server, Config{})
		for range 3 {
			first.Record(event("boom"))
		}
		after(2 * time.Minute)
		first.stop()
		before := server.events(t)

		second := run(t, server, Config{})
		found := event("boom")
		found.Standing = true
		for range 5 { // a restarting actor finds it again and again
			second.Record(found)
			after(time.Minute)
		}
		if diff := cmp.Diff(before, server.events(t)); diff != "" {
			t.Errorf("written by the restarted agent (-before +after):\n%s", diff)
		}
		if got := second.Stats(); got.Adopted != 1 || got.Written != 0 {
			t.Errorf("stats %+v", got)
		}
		second.Record(event("boom")) // now there is a new occurrence
		after(2 * time.Minute)
		expect(t, server, "default/web FailedToRender boom x2")
		second.stop()

		third := run(t, server, Config{})
		third.Record(event("boom"))
		third.Record(event("boom"))
		after(2 * time.Minute)
		expect(t, server, "default/web FailedToRender boom x3")
	})
}

func TestAStateThatWasNotToldIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newAPIServer()
		n := run(t, server, Config{})
		found := event("boom")
		found.Standing = true
		n.Record(found)
		n.Record(event("boom"))
		after(2 * time.Minute)
		expect(t, server, "default/web FailedToRender boom x1")
	})
}

func TestManyNodesTellASharedEventOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newAPIServer()
		shared, own := event("conflict"), event("boom")
		shared.Shared = true
		var nodes []*node
		for i := range 5 {
			n := run(t, server, Config{NodeName: fmt.Sprintf("n%d", i)})
			n.Record(shared)
			n.Record(own)
			nodes = append(nodes, n)
		}
		after(2 * time.Minute)
		nodes[2].Record(shared) // again: all nodes have found it
		after(2 * time.Minute)
		boom := "default/web FailedToRender boom x1"
		expect(t, server, boom, boom, boom, boom, boom, "default/web FailedToRender conflict x1")
		if got := server.count(); got != 10 {
			t.Errorf("%d requests", got)
		}
		server.expire(t)
		after(time.Hour)
		nodes[2].Record(shared) // the event has expired at the server
		after(2 * time.Minute)
		expect(t, server, "default/web FailedToRender conflict x1")
	})
}

func TestWhatTheServerForgotIsCreatedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newAPIServer()
		n := run(t, server, Config{ObjectInterval: time.Minute})
		n.Record(event("boom"))
		synctest.Wait()
		server.expire(t)
		n.Record(event("boom"))
		after(2 * time.Minute)
		expect(t, server, "default/web FailedToRender boom x1")
		if server.count() != 2 {
			t.Errorf("%d requests", server.count())
		}
	})
}

func TestRequestsAreLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newAPIServer()
		n := run(t, server, Config{Interval: time.Second, Burst: 25})
		for i := range 100 {
			n.Record(on(fmt.Sprintf("s%02d", i), "boom"))
		}
		synctest.Wait()
		if got := server.count(); got != 25 {
			t.Errorf("%d requests at once", got)
		}
		after(10*time.Second + time.Millisecond)
		if got := server.count(); got != 35 {
			t.Errorf("%d requests after 10 s", got)
		}
		after(2 * time.Minute)
		if got := n.Stats(); got.Written != 100 || got.Waiting != 0 || got.Lost() != 0 {
			t.Errorf("stats %+v", got)
		}
		first, last := server.requests[0], server.requests[99]
		if !strings.HasPrefix(first, "create s00.") || !strings.HasPrefix(last, "create s99.") {
			t.Errorf("the order is lost: %q ... %q", first, last)
		}
	})
}

func TestOneObjectCannotFloodTheOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newAPIServer()
		n := run(t, server, Config{ObjectInterval: 5 * time.Minute, ObjectBurst: 10})
		for i := range 200 {
			n.Record(event(fmt.Sprintf("boom %d", i)))
		}
		n.Record(on("other", "boom"))
		synctest.Wait()
		if got := n.Stats(); got.Written != 11 || got.Limited != 190 {
			t.Errorf("stats %+v", got)
		}
		after(5 * time.Minute)
		n.Record(event("boom x"))
		n.Record(event("boom y"))
		n.Record(event("boom 0")) // known, so it is no new one
		after(2 * time.Minute)
		if got := n.Stats(); got.Written != 13 || got.Limited != 191 {
			t.Errorf("5 minutes later: stats %+v", got)
		}
	})
}

func TestTheQueueIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newAPIServer()
		server.fail(errTest)
		n := run(t, server, Config{MostEvents: 50})
		for i := range 80 {
			n.Record(on(fmt.Sprint(i), "boom"))
		}
		after(time.Second)
		if got := n.Stats(); got.Overflowed != 30 || got.Waiting != 50 {
			t.Errorf("stats %+v", got)
		}
		server.fail(nil)
		after(5 * time.Minute)
		for i := range 10 { // events that are written make room for new ones
			n.Record(on(fmt.Sprint(100+i), "boom"))
		}
		after(time.Minute)
		if got := n.Stats(); got.Overflowed != 30 || got.Written != 60 || got.Waiting != 0 {
			t.Errorf("after the outage: stats %+v", got)
		}
	})
}

func TestRecordNeverWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newAPIServer()
		server.answer(func(string, string) error { time.Sleep(30 * time.Second); return nil }, nil)
		n := run(t, server, Config{MostEvents: 1000})
		n.Record(event("first"))
		synctest.Wait() // the request is under way
		start := time.Now()
		for i := range 10000 {
			n.Record(on(fmt.Sprint(i%2000), "boom"))
		}
		_ = n.Stats()
		if passed := time.Since(start); passed != 0 {
			t.Errorf("it took %v", passed)
		}
	})
}

func TestAnOutageIsSurvived(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newAPIServer()
		server.fail(errTest)
		n := run(t, server, Config{})
		for i := range 20 {
			n.Record(on(fmt.Sprintf("s%02d", i), "boom"))
		}
		n.Record(on("s00", "boom"))
		after(20 * time.Minute)
		if got := server.count(); got < 10 || got > 30 {
			t.Errorf("%d requests in 20 minutes of silence", got)
		}
		server.fail(nil)
		after(5 * time.Minute)
		if got := n.Stats(); got.Written != 20 || got.Waiting != 0 || got.Lost() != 0 {
			t.Errorf("stats %+v", got)
		}
		if got := server.lines(t); len(got) != 20 || got[0] != "default/s00 FailedToRender boom x1" {
			t.Errorf("the server holds %q", got)
		}
		log := n.logged.String()
		if strings.Count(log, "takes no events") != 1 || strings.Count(log, "takes events again") != 1 {
			t.Errorf("log:\n%s", log)
		}
	})
}

func TestOldNewsIsNotTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newAPIServer()
		server.fail(errTest)
		n := run(t, server, Config{Window: time.Hour})
		n.Record(on("old", "boom"))
		after(45 * time.Minute)
		n.Record(on("young", "boom"))
		after(20 * time.Minute)
		server.fail(nil)
		after(2 * time.Minute)
		expect(t, server, "default/young FailedToRender boom x1")
		if got := n.Stats(); got.Expired != 1 || got.Waiting != 0 {
			t.Errorf("stats %+v", got)
		}
	})
}

func TestTheServerIsLeftAloneAsLongAsItWants(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newAPIServer()
		server.fail(apierrors.NewTooManyRequests("later", 90))
		n := run(t, server, Config{})
		n.Record(event("boom"))
		synctest.Wait()
		server.fail(nil)
		after(89 * time.Second)
		if server.count() != 1 {
			t.Errorf("%d requests", server.count())
		}
		after(2 * time.Second)
		expect(t, server, "default/web FailedToRender boom x1")
	})
}

func TestARefusalConcernsOneEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newAPIServer()
		server.missing["gone"] = true
		forbidden := apierrors.NewForbidden(eventResource.GroupResource(), "x", errTest)
		server.answer(func(_, name string) error {
			if strings.HasPrefix(name, "secret.") {
				return forbidden
			}
			return nil
		}, nil)
		n := run(t, server, Config{})
		e := event("boom")
		e.Object = ServiceObject("gone/web", "uid")
		n.Record(e)
		n.Record(on("secret", "boom"))
		n.Record(on("other", "boom"))
		after(10 * time.Minute)
		expect(t, server, "default/other FailedToRender boom x1")
		if got := n.Stats(); got.Refused != 2 || got.Waiting != 0 || server.count() != 3 || !strings.Contains(n.logged.String(), "is forbidden: boom") {
			t.Errorf("%d requests, stats %+v", server.count(), got)
		}
		server.fail(nil) // the right has been granted since
		n.Record(on("secret", "boom"))
		after(2 * time.Minute)
		expect(t, server, "default/other FailedToRender boom x1", "default/secret FailedToRender boom x1")
	})
}

func TestAnEventThatMakesTheServerFailExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newAPIServer()
		server.answer(func(_, name string) error {
			if strings.HasPrefix(name, "poison.") {
				return apierrors.NewInternalError(errTest)
			}
			return nil
		}, nil)
		n := run(t, server, Config{}, on("poison", "boom"), on("other", "boom"))
		after(3 * time.Second)
		expect(t, server, "default/other FailedToRender boom x1")
		after(time.Hour + 2*time.Minute) // the longest delay after an error is a minute and a half
		if got := n.Stats(); got.Expired != 1 || got.Waiting != 0 || server.count() > 80 {
			t.Errorf("%d requests, stats %+v", server.count(), got)
		}
	})
}

func TestARequestWithoutAnAnswerIsNotToldTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newAPIServer()
		// every request is carried out, and no answer arrives
		server.answer(nil, func(string, string) error { return errTest })
		n := run(t, server, Config{ObjectInterval: time.Minute})
		n.Record(event("boom"))
		after(10 * time.Minute)
		n.Record(event("boom"))
		after(10 * time.Minute)
		server.answer(nil, nil)
		after(5 * time.Minute)
		expect(t, server, "default/web FailedToRender boom x2")
	})
}

func TestDropsAreLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := run(t, newAPIServer(), Config{ObjectBurst: 1})
		for i := range 100 {
			n.Record(event(fmt.Sprint(i)))
		}
		synctest.Wait()
		for i := range 100 {
			n.Record(event(fmt.Sprint(100 + i)))
			after(time.Millisecond)
		}
		after(2 * time.Minute)
		if got := strings.Count(n.logged.String(), "events were dropped"); got != 2 {
			t.Errorf("%d lines for 2 minutes:\n%s", got, n.logged)
		}
		if !strings.Contains(n.logged.String(), "per_object_limit=199") {
			t.Errorf("log:\n%s", n.logged)
		}
	})
}

func TestRunEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newAPIServer()
		server.fail(errTest)
		n := run(t, server, Config{})
		n.Record(event("boom"))
		after(10 * time.Second)
		start := time.Now()
		n.stop()
		if passed := time.Since(start); passed != 0 {
			t.Errorf("it took %v", passed)
		}
		n.Record(event("afterwards")) // harmless
	})
}

func TestManyCallers(t *testing.T) {
	server := newAPIServer()
	w := New(server.Client(), Config{NodeName: "n1", Interval: time.Microsecond}, slog.New(slog.DiscardHandler))
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	var callers sync.WaitGroup
	for c := range 8 {
		callers.Go(func() {
			for i := range 200 {
				w.Record(on(fmt.Sprint(i%20), fmt.Sprint(c%2)))
				_ = w.Stats()
			}
		})
	}
	callers.Wait()
	deadline := time.Now().Add(10 * time.Second)
	for w.Stats().Written < 40 && time.Now().Before(deadline) {
		time.Sleep(time.Millisecond) // the fake server works in real time here
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if got := w.Stats(); got.Recorded != 1600 || got.Repeated != 1560 || got.Written != 40 {
		t.Errorf("stats %+v", got)
	}
}

func TestLogOnlyLogs(t *testing.T) {
	var out bytes.Buffer
	recorder := NewLog(slog.New(slog.NewTextHandler(&out, nil)))
	recorder.Record(event("boom"))
	recorder.Record(Started("n1"))
	for _, want := range []string{
		`level=WARN msg=event object="Service default/web" reason=FailedToRender action=Render note=boom`,
		`level=INFO msg=event object="Node n1" reason=Starting action=StartTroupe note="troupe serves the services of node n1"`,
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %s in:\n%s", want, &out)
		}
	}
}
