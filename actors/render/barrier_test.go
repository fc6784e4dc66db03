package render

import (
	"testing"

	"github.com/troupe-vpp/troupe/messages"
)

func TestBarrier(t *testing.T) {
	b := &barrier{awaited: map[string]uint64{}}
	render := func(key string, generation uint64) *messages.Render {
		return &messages.Render{Key: key, Generation: generation, View: &messages.ServiceView{}}
	}
	if b.passed() || b.listed("a/a") || b.departed(render("a/a", 1)) {
		t.Error("without a list")
	}
	b.begun = &messages.Begin{Keys: []string{"a/a", "b/b"}, Generation: 10}
	b.awaited["a/a"], b.awaited["b/b"] = 4, 5
	if b.passed() || !b.listed("b/b") || b.listed("c/c") {
		t.Error("with a list")
	}
	b.rendered("a/a", 3)
	b.rendered("c/c", 9)
	if len(b.awaited) != 2 {
		t.Errorf("an older generation, or that of another service, counts: %v", b.awaited)
	}
	b.rendered("a/a", 4)
	b.rendered("b/b", 7)
	if !b.passed() {
		t.Errorf("awaited %v", b.awaited)
	}
	b.begun.Provisional = true
	if b.passed() {
		t.Error("passed on a provisional list")
	}
	for what, tc := range map[string]struct {
		m    *messages.Render
		want bool
	}{
		"listed":                    {render("a/a", 1), false},
		"older than the list":       {render("c/c", 9), true},
		"as old as the list":        {render("c/c", 10), false},
		"it says itself that it is": {&messages.Render{Key: "c/c", Generation: 1}, false},
	} {
		if got := b.departed(tc.m); got != tc.want {
			t.Errorf("%s: departed %t", what, got)
		}
	}
}
