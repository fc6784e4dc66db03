package events

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/troupe-vpp/troupe/messages"
)

func TestTrackerTellsStories(t *testing.T) {
	boom := ack("nat44", failed, because("boom"))
	for _, test := range []struct {
		name     string
		statuses []*messages.ServiceStatus
		want     []string
	}{
		{
			"a failure is told once, whatever happens in between",
			[]*messages.ServiceStatus{
				status(), status(ack("nat44", inSync)), status(boom), status(), status(ack("nat44", pending)), status(boom), status(ack("nat44", pending)), status(boom),
			},
			[]string{"FailedToRender nat44: boom"},
		},
		{
			"the recovery is told, though it was pending in between",
			[]*messages.ServiceStatus{status(boom), status(), status(ack("nat44", pending)), status(ack("nat44", inSync)), status(ack("nat44", inSync))},
			[]string{"~FailedToRender nat44: boom", "+Rendered nat44: VPP holds everything that this service needs"},
		},
		{
			"up and down",
			[]*messages.ServiceStatus{status(ack("nat44", inSync)), status(boom), status(ack("nat44", inSync)), status(boom)},
			[]string{"FailedToRender nat44: boom", "+Rendered nat44: VPP holds everything that this service needs", "FailedToRender nat44: boom"},
		},
		{
			"a good start is not worth a word",
			[]*messages.ServiceStatus{{Key: "default/web"}, status(), status(ack("nat44", pending)), status(ack("nat44", inSync))},
			nil,
		},
		{
			"a new object of the same name begins anew",
			[]*messages.ServiceStatus{status(boom), status(gone), status(boom, uid("uid-2")), status(boom, uid("uid-3"))},
			[]string{"~FailedToRender nat44: boom", "~FailedToRender nat44: boom", "~FailedToRender nat44: boom"},
		},
		{
			"a lost status does no harm",
			[]*messages.ServiceStatus{status(boom), {Key: "default/web"}, status(boom)},
			[]string{"~FailedToRender nat44: boom"},
		},
		{
			"renderers are apart",
			[]*messages.ServiceStatus{
				status(boom, ack("cnat", inSync)), status(ack("nat44", pending), ack("cnat", failed, because("bang"))), status(boom, ack("cnat", pending)),
				status(ack("nat44", inSync), ack("cnat", failed, because("bang"))),
			},
			[]string{
				"~FailedToRender nat44: boom", "FailedToRender cnat: bang", "+Rendered nat44: VPP holds everything that this service needs",
			},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			tracker := NewTracker()
			var got []string
			for _, s := range test.statuses {
				before := proto.Clone(s)
				got = append(got, eventText(tracker.Observe(s))...)
				if diff := cmp.Diff(before, proto.Message(s), protocmp.Transform()); diff != "" {
					t.Errorf("the status was modified:\n%s", diff)
				}
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestTrackerForgetsWhatIsGone(t *testing.T) {
	tracker := NewTracker()
	tracker.Observe(status())
	if tracker.Len() != 1 || tracker.UID("default/web") != "uid-1" || tracker.UID("default/other") != "" {
		t.Errorf("%d known, uid %q", tracker.Len(), tracker.UID("default/web"))
	}
	tracker.Observe(status(gone))
	if tracker.Len() != 0 {
		t.Errorf("%d known", tracker.Len())
	}
}

func TestSettledIsTheStatusItselfWhereNothingIsPending(t *testing.T) {
	s := status(ack("nat44", inSync))
	if got := Settled(status(ack("nat44", failed)), s); got != s {
		t.Errorf("a copy: %v", got)
	}
	busy := status(ack("nat44", pending), wrong("Service", "default/web", "a", "b"))
	got := Settled(s, busy)
	want := status(ack("nat44", inSync), wrong("Service", "default/web", "a", "b"))
	if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if got := Settled(nil, busy); len(got.GetRenders()) != 0 {
		t.Errorf("made up: %v", got)
	}
}
