package render

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/troupe-vpp/troupe/vpp/link"
)

// retval is a refusal, wrapped as the packages that talk to VPP wrap it.
func retval(message string, n int32) error {
	return fmt.Errorf("an operation: %w", &link.RetvalError{Message: message, Retval: n})
}

// refusedQueue holds objects that VPP has refused, n of each kind of refusal.
func refusedQueue(t *testing.T, n int, classes map[string]error) (*queue[name], time.Time) {
	t.Helper()
	q, now := queueOf(newNames()), time.Unix(1000, 0)
	refused := map[name]error{}
	for class, err := range classes {
		for i := range n {
			k := name(fmt.Sprintf("%s%02d", class, i))
			q.list(k)
			refused[k] = err
		}
	}
	q.conclude(took(q, n*len(classes)), refused, now, backoff)
	if len(q.failed) != n*len(classes) || q.Pending() != 0 {
		t.Fatalf("%d refused, %d pending", len(q.failed), q.Pending())
	}
	return q, now
}

// TestProbesTakeTurns: one object of each kind of refusal, the next one each time; none where the
// same request cannot end otherwise or VPP has to be read for it.
func TestProbesTakeTurns(t *testing.T) {
	classes := map[string]error{
		"a": retval("m", -1), "b": retval("m", -2), "c": retval("n", -1), "other": errors.New("no"),
		"unsafe": fmt.Errorf("op: %w", link.ErrRefused), "exists": fmt.Errorf("op: %w: %w", link.ErrStale, retval("m", -81)),
	}
	q, now := refusedQueue(t, 3, classes)
	for _, want := range []string{"00", "01", "02", "00"} {
		q.probe()
		got := took(q, 100)
		if all := []name{name("a" + want), name("b" + want), name("c" + want), name("other" + want)}; !slices.Equal(got, all) {
			t.Errorf("tried %v, want %v", got, all)
		}
		refused := map[name]error{}
		for _, k := range got {
			refused[k] = classes[strings.TrimRight(string(k), "0123456789")]
		}
		q.conclude(got, refused, now, backoff)
	}
}

// TestProbeInVain: it changes neither the delay nor whether VPP is read, and is no news; another
// refusal is.
func TestProbeInVain(t *testing.T) {
	q, now := refusedQueue(t, 1, map[string]error{"a": retval("m", -1)})
	k := name("a00")
	for range 2 { // so that VPP would be read for it at the third time
		now = q.failed[k].until
		q.retry(now)
		q.conclude(took(q, 1), map[name]error{k: retval("m", -1)}, now, backoff)
	}
	if !q.stubborn([]name{k}) {
		t.Fatal("three refusals do not have VPP read")
	}
	before := *q.failed[k]
	q.probe()
	q.retry(now.Add(time.Hour))
	if tried := took(q, 100); len(tried) != 1 {
		t.Errorf("%v are tried at a time", tried)
	}
	err := retval("m", -1)
	if !q.asBefore(k, err) || q.asBefore(k, retval("m", -2)) || q.asBefore(k, nil) || q.asBefore("other", err) {
		t.Error("news are taken for none, or the other way round")
	}
	q.conclude([]name{k}, map[name]error{k: err}, now, backoff)
	if f := q.failed[k]; f.until != before.until || f.tries != before.tries || q.stubborn([]name{k}) {
		t.Errorf("before %+v, now %+v", before, *f)
	}
	q.probe()
	q.conclude(took(q, 1), map[name]error{k: retval("m", -2)}, now, backoff)
	if f := q.failed[k]; f.tries != before.tries+1 || f.refusal.retval != -2 {
		t.Errorf("before %+v, now %+v", before, *f)
	}
}

// TestReleaseGrows: when VPP accepts the probe, more and more objects of the same kind of refusal
// follow at once; when it refuses again, none.
func TestReleaseGrows(t *testing.T) {
	classes := map[string]error{"a": retval("m", -1), "b": retval("m", -2)}
	q, now := refusedQueue(t, 20, classes)
	q.probe()
	q.conclude(took(q, 100), map[name]error{"b00": classes["b"]}, now, backoff)
	for _, want := range []int{2, 4, 8} {
		batch := took(q, 100)
		if len(batch) != want || !strings.HasPrefix(string(batch[0]), "a") {
			t.Fatalf("%d follow, want %d: %v", len(batch), want, batch)
		}
		q.conclude(batch, nil, now, backoff)
	}
	batch := took(q, 100) // the last five
	q.conclude(batch, map[name]error{batch[0]: classes["a"]}, now, backoff)
	if again := took(q, 100); len(again) != 0 {
		t.Errorf("%v follow although one of %v was refused", again, batch)
	}
	if len(q.failed) != 1+20 {
		t.Errorf("%d are refused, want 21", len(q.failed))
	}
}

// TestProbeSurvivesARead: after a read of VPP, an object that was about to be tried is tried, a
// waiting one goes on waiting, and one that is in sync does neither.
func TestProbeSurvivesARead(t *testing.T) {
	q, _ := refusedQueue(t, 3, map[string]error{"a": retval("m", -1)})
	q.probe()
	settled := q.relist([]name{"a01", "new", "a00"})
	if got := took(q, 100); !slices.Equal(got, []name{"a00", "new"}) || !slices.Equal(settled, []name{"a02"}) || !q.failed["a00"].probe {
		t.Errorf("tried %v, settled %v", got, settled)
	}
}

// TestOnlyWhatIsSentWasTriedAgain: what is under way when its time comes once more is listed, and
// not tried for that.
func TestOnlyWhatIsSentWasTriedAgain(t *testing.T) {
	q, now := refusedQueue(t, 2, map[string]error{"a": retval("m", -1)})
	now = now.Add(time.Minute)
	q.retry(now)
	sent := took(q, 10)
	if n := q.retries(sent); n != 2 {
		t.Errorf("%d of two were refused before", n)
	}
	q.retry(now) // while VPP works on them
	q.probe()
	q.conclude(sent, nil, now, backoff)
	if again := took(q, 10); len(again) != 0 {
		t.Errorf("%v are tried again although VPP has taken them", again)
	}
	if n := q.retries(sent); n != 0 {
		t.Errorf("%d are refused still", n)
	}
}

// TestReleaseHasAnOrder: also with several kinds of refusals, so that a run can be repeated.
func TestReleaseHasAnOrder(t *testing.T) {
	classes := map[string]error{"a": retval("m", -1), "b": retval("m", -2), "c": retval("n", -3), "d": retval("l", -1)}
	for range 20 {
		q, now := refusedQueue(t, 3, classes)
		q.probe()
		q.conclude(took(q, 100), nil, now, backoff)
		if got, want := took(q, 100), []name{"d01", "d02", "b01", "b02", "a01", "a02", "c01", "c02"}; !slices.Equal(got, want) {
			t.Fatalf("%v follow, want %v", got, want)
		}
	}
}
