package events

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"
)

var web = ServiceObject("default/web", "uid-1")

// event makes an event on a service.
func event(note string) Event {
	return Event{Object: web, Type: Warning, Reason: ReasonFailedToRender, Action: actionRender, Note: note}
}

func TestTheObjectOfAnEvent(t *testing.T) {
	e := event("boom")
	j := &known{id: identityOf(&e), first: begin}
	want := &eventsv1.Event{
		ObjectMeta:          metav1.ObjectMeta{Namespace: "default"},
		EventTime:           metav1.NewMicroTime(begin),
		ReportingController: "troupe",
		ReportingInstance:   "troupe-n1",
		Action:              "Render",
		Reason:              "FailedToRender",
		Regarding:           corev1.ObjectReference{APIVersion: "v1", Kind: "Service", Namespace: "default", Name: "web", UID: "uid-1"},
		Note:                "boom",
		Type:                "Warning",
	}
	got := j.object("troupe-n1")
	name := got.Name
	got.Name = ""
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if !strings.HasPrefix(name, "web.") || len(name) != len("web.")+16 {
		t.Errorf("name %q", name)
	}
}

func TestNodeEventsLiveInDefault(t *testing.T) {
	e := Started("n1")
	got := (&known{id: identityOf(&e), first: begin}).object("troupe-n1")
	want := corev1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: "n1", UID: "n1"}
	if got.Namespace != "default" || got.Regarding != want || got.Type != "Normal" {
		t.Errorf("%+v", got)
	}
}

func TestEverythingThatMakesAnEventIsInItsName(t *testing.T) {
	base := event("boom")
	names := map[string]string{}
	for what, change := range map[string]func(*Event){
		"the same":  func(*Event) {},
		"namespace": func(e *Event) { e.Object.Namespace = "other" },
		"name":      func(e *Event) { e.Object.Name = "web2" },
		"uid":       func(e *Event) { e.Object.UID = "uid-2" },
		"kind":      func(e *Event) { e.Object.Kind = "Node" },
		"type":      func(e *Event) { e.Type = Normal },
		"reason":    func(e *Event) { e.Reason = ReasonRendered },
		"action":    func(e *Event) { e.Action = actionListen },
		"note":      func(e *Event) { e.Note = "bang" },
		"shared":    func(e *Event) { e.Shared = true },
	} {
		e := base
		change(&e)
		id := identityOf(&e)
		name := objectName(&id, "troupe-n1", 0)
		if other, taken := names[name]; taken {
			t.Errorf("%s and %s have the name %s", what, other, name)
		}
		names[name] = what
		if again := objectName(&id, "troupe-n1", 1); again == name {
			t.Errorf("%s: the next occurrence has the same name", what)
		}
		if elsewhere := objectName(&id, "troupe-n2", 0); (elsewhere == name) != e.Shared {
			t.Errorf("%s: on another node %s, here %s", what, elsewhere, name)
		}
		e.Standing = true
		if standing := identityOf(&e); objectName(&standing, "troupe-n1", 0) != name {
			t.Errorf("%s: another name when it stands", what)
		}
	}
}

func TestNamesAreValid(t *testing.T) {
	long := strings.Repeat("a", 248) + ".b.c"
	for object, prefix := range map[string]string{
		"web": "web.", "ip-10-0-0-1.ec2.internal": "ip-10-0-0-1.ec2.internal.", long: strings.Repeat("a", 236) + ".", "Not_Valid": "troupe.", "": "troupe.",
		strings.Repeat("a", 235) + "..b": strings.Repeat("a", 235) + ".",
	} {
		id := Event{Object: Object{Kind: "Node", Name: object}}
		if got := objectName(&id, "troupe-n1", 0); !strings.HasPrefix(got, prefix) || len(got) > mostName || len(got) != len(prefix)+16 {
			t.Errorf("%q: %q", object, got)
		}
	}
}

func TestInstanceNames(t *testing.T) {
	if got := instanceName("n1"); got != "troupe-n1" {
		t.Errorf("got %q", got)
	}
	a, b := instanceName(strings.Repeat("n", 200)+"a"), instanceName(strings.Repeat("n", 200)+"b")
	if len(a) != 128 || len(b) != 128 || a == b {
		t.Errorf("%q and %q", a, b)
	}
}

func TestNotesFit(t *testing.T) {
	if got := trim("short"); got != "short" {
		t.Errorf("got %q", got)
	}
	rapid.Check(t, func(t *rapid.T) {
		note := rapid.String().Draw(t, "note") + strings.Repeat(rapid.SampledFrom([]string{"a", "é", "\U0001f600", "\xff"}).Draw(t, "rune"),
			rapid.IntRange(0, 2000).Draw(t, "times"))
		got := trim(note)
		if len(got) > mostNote || !utf8.ValidString(got) {
			t.Fatalf("%d bytes, valid %t", len(got), utf8.ValidString(got))
		}
		if len(got) < mostNote-6 && got != strings.ToValidUTF8(note, "?") {
			t.Fatalf("cut without need: %d of %d bytes", len(got), len(note))
		}
	})
}

func TestConstructors(t *testing.T) {
	got := eventText([]Event{
		Started("n1"), HealthCheck(web, "n1", 30000, errTest), HealthCheck(web, "n1", 30000, nil), Quarantined(web, "n1", "panic: boom"), Released(web, "n1"),
	})
	want := []string{
		"+Starting troupe serves the services of node n1",
		`FailedToStartServiceHealthcheck node n1 failed to start healthcheck "default/web" on port 30000: boom`,
		`+Recovered node n1 serves healthcheck "default/web" on port 30000 again`,
		"Quarantined node n1 ignores changes of this service for now and keeps serving its last state: panic: boom",
		"+Recovered node n1 follows changes of this service again",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if got := web.String() + ", " + NodeObject("n1").String(); got != "Service default/web, Node n1" {
		t.Errorf("objects %s", got)
	}
}
