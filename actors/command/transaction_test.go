package command

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// ground is changed by the operations of a test: it counts the effects of each.
type ground struct {
	log  []string
	left map[string]int
}

var errBroken = errors.New("broken")

// fates of an operation.
const (
	succeeds = iota // at once
	refuses         // at once, having done nothing
	waits           // its result comes later
)

// act makes an operation with a fate; stays says that it cannot be rolled back.
func act(name string, fate int, stays bool) Operation[*ground] {
	return Operation[*ground]{
		Name: name,
		Do: func(g *ground) (bool, error) {
			g.log = append(g.log, "do "+name)
			if fate == refuses {
				return false, errBroken
			}
			g.left[name]++
			return fate == succeeds, nil
		},
		Undo: func(g *ground) (bool, error) {
			g.log = append(g.log, "undo "+name)
			if stays {
				return false, errBroken
			}
			g.left[name]--
			return true, nil
		},
	}
}

func TestTransaction(t *testing.T) {
	for name, tt := range map[string]struct {
		operations []Operation[*ground]
		play       func(g *ground, tx *Transaction[*ground])
		log        []string
		err        string
		ran        []string
	}{
		"nothing to do": {},
		"all at once": {
			operations: []Operation[*ground]{act("a", succeeds, false), act("b", succeeds, false)},
			log:        []string{"do a", "do b"}, ran: []string{"a", "b"},
		},
		"a removal goes the other way": {
			operations: []Operation[*ground]{act("c", succeeds, false), act("b", succeeds, false), act("a", succeeds, false)},
			log:        []string{"do c", "do b", "do a"}, ran: []string{"c", "b", "a"},
		},
		"the last is refused": {
			operations: []Operation[*ground]{act("a", succeeds, false), act("b", succeeds, false), act("c", refuses, false)},
			log:        []string{"do a", "do b", "do c", "undo b", "undo a"}, err: "c: broken",
			ran: []string{"a", "b", "roll back b", "roll back a"},
		},
		"one fails that was under way": {
			operations: []Operation[*ground]{act("a", succeeds, false), act("b", waits, false), act("c", succeeds, false)},
			play:       func(g *ground, tx *Transaction[*ground]) { tx.Finish(g, tx.ticket, errBroken) },
			log:        []string{"do a", "do b", "undo b", "undo a"}, err: "b: broken", ran: []string{"a", "roll back b", "roll back a"},
		},
		"results that come twice or too late": {
			operations: []Operation[*ground]{act("a", waits, false), act("b", waits, false)},
			play: func(g *ground, tx *Transaction[*ground]) {
				first := tx.ticket
				tx.Finish(g, first, nil)
				tx.Finish(g, first, errBroken)
				tx.Finish(g, 0, errBroken)
				last := tx.ticket
				tx.Abandon(g, ErrTooLate)
				tx.Finish(g, last, nil)
				tx.Abandon(g, errBroken)
			},
			log: []string{"do a", "do b", "undo b", "undo a"}, err: "b: not done in time",
			ran: []string{"a", "roll back b", "roll back a"},
		},
		"what cannot be rolled back does not keep the rest": {
			operations: []Operation[*ground]{act("a", succeeds, false), act("b", succeeds, true), {Name: "c"}, act("d", refuses, false)},
			log:        []string{"do a", "do b", "do d", "undo b", "undo a"},
			err:        "d: broken\nthe rollback is not complete\nroll back b: broken",
			ran:        []string{"a", "b", "c", "roll back a"},
		},
	} {
		g := &ground{left: map[string]int{}}
		tx := NewTransaction(tt.operations...)
		tx.Begin(g)
		if tt.play != nil {
			tt.play(g, tx)
		}
		got := ""
		if err := tx.err(); err != nil {
			got = err.Error()
		}
		if !tx.ended() || got != tt.err {
			t.Errorf("%s: ended %t with %q, want %q", name, tx.ended(), got, tt.err)
		}
		if diff := cmp.Diff(tt.log, g.log) + cmp.Diff(tt.ran, tx.executed); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// TestTransactionIsAllOrNothing plays any operations with any results: in the end all of them are
// done, or none is.
func TestTransactionIsAllOrNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		fates := rapid.SliceOfN(rapid.IntRange(succeeds, waits), 0, 6).Draw(t, "fates")
		g := &ground{left: map[string]int{}}
		var operations []Operation[*ground]
		for i, fate := range fates {
			operations = append(operations, act(fmt.Sprint(i), fate, false))
		}
		tx := NewTransaction(operations...)
		for tx.Begin(g); !tx.ended(); {
			var err error
			if rapid.Bool().Draw(t, "fails") {
				err = errBroken
			}
			tx.Finish(g, tx.ticket, err)
		}
		want := 1
		if tx.err() != nil {
			want = 0
		}
		for i, fate := range fates {
			if n := g.left[fmt.Sprint(i)]; n != want || want == 1 && fate == refuses {
				t.Errorf("operation %d is there %d times, want %d: %v, %v", i, n, want, g.log, tx.err())
			}
		}
		if undone := slices.DeleteFunc(slices.Clone(g.log), func(l string) bool { return l[0] == 'd' }); !slices.IsSortedFunc(undone, func(a, b string) int {
			return strings.Compare(b, a)
		}) {
			t.Errorf("not rolled back in the reverse order: %v", g.log)
		}
	})
}
