package render

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestTurns: services of other namespaces come after a turn of one with much to do, whatever came
// first, and so do other services of its own.
func TestTurns(t *testing.T) {
	var q turns[string]
	push := func(service string, n int) {
		for i := range n {
			q.push(service, fmt.Sprint(service, " ", i))
		}
	}
	push("evil/a", 3*turnSize)
	push("evil/b", 2*turnSize)
	push("shop/web", 2)
	push("", 1)
	var got []string
	for !q.empty() {
		keys, _, drained := q.turn(1000, func(string) int { return 1 })
		got = append(got, fmt.Sprintf("%s x%d %s", keys[0], len(keys), drained))
	}
	want := []string{
		"evil/a 0 x16 ", "shop/web 0 x2 shop/web", " 0 x1 ", "evil/b 0 x16 ", "evil/a 16 x16 ", "evil/b 16 x16 evil/b", "evil/a 32 x16 evil/a",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

// TestTurnsLoseNothing: every object comes out once, the objects of one service in their order, and
// a service waits exactly while one of its objects does.
func TestTurnsLoseNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var q turns[int]
		left := map[string][]int{}
		for i := range rapid.IntRange(1, 200).Draw(t, "steps") {
			service := fmt.Sprintf("%c/%d", 'a'+rapid.IntRange(0, 2).Draw(t, "namespace"), rapid.IntRange(0, 2).Draw(t, "service"))
			if rapid.IntRange(0, 4).Draw(t, "take") > 0 {
				q.push(service, i)
				left[service] = append(left[service], i)
				continue
			}
			keys, _, drained := q.turn(rapid.IntRange(1, 20).Draw(t, "most"), func(int) int { return 1 })
			for service, of := range left {
				if len(keys) > 0 && slices.Contains(of, keys[0]) {
					if left[service] = of[len(keys):]; !slices.Equal(of[:len(keys)], keys) || (len(left[service]) == 0) != (drained == service) {
						t.Fatalf("took %v of %v, drained %q", keys, of, drained)
					}
				}
			}
			total := 0
			for service, of := range left {
				if total += len(of); q.waits(service) != (len(of) > 0) {
					t.Fatalf("%s waits: %t with %v", service, q.waits(service), of)
				}
			}
			if q.empty() != (total == 0) || total > 0 && len(q.order) > 3 {
				t.Fatalf("empty: %t with %v", q.empty(), left)
			}
		}
	})
}

// TestTurnsAreBoundedByMessages: what needs many messages has as many of them in a turn as what
// needs few, and what has begun goes on before the next one.
func TestTurnsAreBoundedByMessages(t *testing.T) {
	a := newNames()
	q := queueOf(a)
	a.wanted, a.cost = map[name][]string{}, map[name]int{}
	add := func(service string, k name, cost int) {
		a.wanted[k], a.cost[k], a.differs[k] = []string{service}, cost, true
		q.touch(k, service)
	}
	for i := range 20 {
		add("evil/a", name(fmt.Sprintf("big%02d", i)), 2*TurnMessages)
	}
	add("shop/web", "web", 2)
	var got []string
	for range 4 {
		var keys []name
		messages := 0
		for messages < 2*TurnMessages && !q.next.empty() {
			messages += q.takeTurn(10, func(k name) int {
				keys = append(keys, k)
				return a.cost[k]
			})
		}
		got = append(got, fmt.Sprint(keys, messages))
		for _, k := range keys {
			a.cost[k] -= TurnMessages
			a.differs[k] = a.cost[k] > 0
		}
		q.conclude(keys, nil, time.Unix(0, 0), backoff)
	}
	want := []string{"[big00 web big01] 514", "[big00 big01] 512", "[big02 big03] 512", "[big02 big03] 512"}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}
