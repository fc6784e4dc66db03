package link

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/cnat"
	"go.fd.io/govpp/binapi/nat44_ed"
)

// codeOf folds an error of a result into one number.
func codeOf(err error) int32 {
	code, ok := Retval(err)
	switch {
	case ok:
		return code
	case errors.Is(err, ErrUnknown):
		return codeUnknown
	case errors.Is(err, ErrNotSent):
		return codeNotSent
	default:
		return codeOther
	}
}

func TestDoReturnsOneResultPerRequestInOrder(t *testing.T) {
	bubble(t, Config{}, func(t *testing.T, vpp *fakeVPP, l *running) {
		reqs := append(adds(1000), add(5), &nat44_ed.Nat44AddDelLbStaticMapping{ExternalPort: 5000})
		results, err := l.Do(t.Context(), reqs)
		if err != nil {
			t.Fatal(err)
		}
		got := codes(results)
		for i, code := range got[:1000] {
			if code != 0 {
				t.Fatalf("result %d is %d: %v", i, code, results[i].Err)
			}
		}
		if got[1000] != int32(api.VALUE_EXIST) || got[1001] != int32(api.NO_SUCH_ENTRY) {
			t.Errorf("codes of duplicate and of unknown = %v", got[1000:])
		}
		if !errors.Is(results[1000].Err, api.VALUE_EXIST) {
			t.Errorf("%v is not VALUE_EXIST", results[1000].Err)
		}
		if reply, ok := results[1000].Reply.(*nat44_ed.Nat44AddDelLbStaticMappingReply); !ok || reply.Retval != int32(api.VALUE_EXIST) {
			t.Errorf("reply = %#v", results[1000].Reply)
		}
	})
}

func TestDoWithoutRequests(t *testing.T) {
	bubble(t, Config{}, func(t *testing.T, vpp *fakeVPP, l *running) {
		if results, err := l.Do(t.Context(), nil); err != nil || len(results) != 0 {
			t.Errorf("Do(nil) = %v, %v", results, err)
		}
	})
}

func TestDoWithoutConnection(t *testing.T) {
	l := New(Config{Socket: "/nonexistent"}, quietLog())
	results, err := l.Do(t.Context(), adds(3))
	if !errors.Is(err, ErrDown) || len(results) != 3 {
		t.Fatalf("Do = %v, %v", results, err)
	}
	for _, r := range results {
		if !errors.Is(r.Err, ErrNotSent) || !errors.Is(r.Err, ErrDown) {
			t.Errorf("result = %v, want ErrNotSent because of ErrDown", r.Err)
		}
	}
	if err := l.Dump(t.Context(), &nat44_ed.Nat44LbStaticMappingDump{}, nil); !errors.Is(err, ErrDown) {
		t.Errorf("Dump = %v, want ErrDown", err)
	}
}

func TestDoKeepsRefusedRequestsAway(t *testing.T) {
	bubble(t, Config{}, func(t *testing.T, vpp *fakeVPP, l *running) {
		bad := add(2)
		bad.Locals = bad.Locals[:1]
		vpp.missing["cnat_translation_del"] = true
		vpp.missing["nat44_forwarding_enable_disable_reply"] = true
		var typed *nat44_ed.Nat44AddDelLbStaticMapping
		results, err := l.Do(t.Context(), []api.Message{
			add(1), bad, nil, typed, &nat44_ed.Nat44LbStaticMappingDump{}, &nat44_ed.Nat44EdOutputInterfaceGet{},
			&nat44_ed.Nat44AddDelLbStaticMappingReply{}, &cnat.CnatTranslationDel{}, &nat44_ed.Nat44ForwardingEnableDisable{}, add(3),
		})
		if err != nil {
			t.Fatal(err)
		}
		want := []error{nil, ErrRefused, ErrRefused, ErrRefused, ErrRefused, ErrRefused, ErrRefused, ErrUnsupported, ErrUnsupported, nil}
		for i, r := range results {
			if !errors.Is(r.Err, want[i]) {
				t.Errorf("result %d = %v, want %v", i, r.Err, want[i])
			}
		}
		if got := results[7].Err.Error(); got != "message not supported by this VPP: cnat_translation_del_"+(&cnat.CnatTranslationDel{}).GetCrcString()+": this version of cnat has no such message" {
			t.Errorf("error %q does not name message and CRC", got)
		}
		if _, n, _, _ := vpp.counters(); n != 2 {
			t.Errorf("VPP has seen %d mappings, want 2", n)
		}
	})
}

func TestWindowIsRespected(t *testing.T) {
	for _, window := range []int{1, 2, 16, 128} {
		bubble(t, Config{Window: window}, func(t *testing.T, vpp *fakeVPP, l *running) {
			wake := vpp.hang()
			time.AfterFunc(100*time.Millisecond, wake)
			if _, err := l.Do(t.Context(), adds(1000)); err != nil {
				t.Fatal(err)
			}
			peak, n, _, _ := vpp.counters()
			// One request may be in VPP's hands and no longer counted as waiting.
			if peak > window || peak < window-1 || n != 1000 {
				t.Errorf("window %d: %d requests waited, %d executed", window, peak, n)
			}
		})
	}
}

// TestDeletionsTakeMoreOfTheWindow: a deletion counts once for each entry of its row, because VPP
// walks through its NAT sessions for each.
func TestDeletionsTakeMoreOfTheWindow(t *testing.T) {
	bubble(t, Config{}, func(t *testing.T, vpp *fakeVPP, l *running) {
		reqs := adds(100)
		for _, req := range reqs {
			m := req.(*nat44_ed.Nat44AddDelLbStaticMapping)
			m.IsAdd, m.Locals = false, append(m.Locals, m.Locals...)
		}
		wake := vpp.hang()
		time.AfterFunc(100*time.Millisecond, wake)
		if _, err := l.Do(t.Context(), reqs); err != nil {
			t.Fatal(err)
		}
		entries := len(reqs[0].(*nat44_ed.Nat44AddDelLbStaticMapping).Locals)
		if peak, n, _, _ := vpp.counters(); peak > 16/entries || n != 100 {
			t.Errorf("%d deletions of %d entries waited, %d executed", peak, entries, n)
		}
	})
}

func TestWindowOfBytes(t *testing.T) {
	bubble(t, Config{WindowBytes: 2000}, func(t *testing.T, vpp *fakeVPP, l *running) {
		large := add(1)
		for range 250 {
			large.Locals = append(large.Locals, nat44_ed.Nat44LbAddrPort{Probability: 0})
		}
		reqs := append([]api.Message{large}, adds(100)[1:]...)
		wake := vpp.hang()
		time.AfterFunc(100*time.Millisecond, wake)
		results, err := l.Do(t.Context(), reqs)
		if err != nil {
			t.Fatal(err)
		}
		for i, r := range results {
			if r.Err != nil {
				t.Fatalf("result %d: %v", i, r.Err)
			}
		}
		if peak, _, _, _ := vpp.counters(); peak > 2000/100 {
			t.Errorf("%d requests waited, too many for 2000 bytes", peak)
		}
	})
}

func TestConcurrentCallers(t *testing.T) {
	bubble(t, Config{Window: 8}, func(t *testing.T, vpp *fakeVPP, l *running) {
		var callers sync.WaitGroup
		for caller := range 8 {
			callers.Go(func() {
				var reqs []api.Message
				for i := range 300 {
					reqs = append(reqs, add(uint16(caller*1000+i+1)))
				}
				results, err := l.Do(t.Context(), append(reqs, reqs[0]))
				if err != nil {
					t.Error(err)
					return
				}
				for i, r := range results[:300] {
					if r.Err != nil {
						t.Errorf("caller %d request %d: %v", caller, i, r.Err)
					}
				}
				if !errors.Is(results[300].Err, api.VALUE_EXIST) {
					t.Errorf("caller %d: the repeated request gave %v", caller, results[300].Err)
				}
				own := 0
				err = l.Dump(t.Context(), &nat44_ed.Nat44LbStaticMappingDump{}, func(m api.Message) {
					if port := m.(*nat44_ed.Nat44LbStaticMappingDetails).ExternalPort; int(port-1)/1000 == caller {
						own++
					}
				})
				if err != nil || own != 300 {
					t.Errorf("caller %d: dump has %d of its rows, error %v", caller, own, err)
				}
			})
		}
		callers.Wait()
	})
}

// TestSimultaneousFirstUse: callers that use a request for the first time in a connection at the
// same moment agree on its answer.
func TestSimultaneousFirstUse(t *testing.T) {
	bubble(t, Config{}, func(t *testing.T, vpp *fakeVPP, l *running) {
		vpp.mu.Lock()
		vpp.lookup, vpp.pace = time.Millisecond, 5*time.Millisecond
		vpp.mu.Unlock()
		var callers sync.WaitGroup
		for caller := range 4 {
			callers.Go(func() {
				time.Sleep(time.Duration(caller) * 500 * time.Microsecond)
				results, err := l.Do(t.Context(), []api.Message{add(uint16(caller + 1))})
				if err != nil || results[0].Err != nil {
					t.Errorf("caller %d: %v, %v", caller, err, results[0].Err)
				}
			})
		}
		callers.Wait()
	})
}

func TestALargeCallLetsOthersTakeTurns(t *testing.T) {
	bubble(t, Config{}, func(t *testing.T, vpp *fakeVPP, l *running) {
		vpp.mu.Lock()
		vpp.pace = time.Millisecond
		vpp.mu.Unlock()
		var large time.Duration
		began := time.Now()
		done := make(chan struct{})
		go func() {
			defer close(done)
			_, _ = l.Do(t.Context(), adds(5000))
			large = time.Since(began)
		}()
		time.Sleep(100 * time.Millisecond)
		at := time.Now()
		if _, err := l.Do(t.Context(), []api.Message{add(60000)}); err != nil {
			t.Fatal(err)
		}
		small := time.Since(at)
		<-done
		if small > large/10 {
			t.Errorf("a single request took %s beside a batch of %s", small, large)
		}
	})
}

func TestCancelledCallSendsNothingMore(t *testing.T) {
	bubble(t, Config{Window: 10}, func(t *testing.T, vpp *fakeVPP, l *running) {
		wake := vpp.hang()
		began := time.Now()
		results, err := l.Do(deadline(t, 50*time.Millisecond), adds(100))
		if err != nil {
			t.Fatalf("Do = %v, want no error because requests were sent", err)
		}
		if took := time.Since(began); took != 50*time.Millisecond {
			t.Errorf("Do returned after %s", took)
		}
		got := codes(results)
		for i, code := range got {
			want := int32(codeUnknown)
			if i >= 10 {
				want = codeNotSent
			}
			if code != want {
				t.Fatalf("result %d = %d (%v), want %d", i, code, results[i].Err, want)
			}
		}
		if !errors.Is(results[0].Err, context.DeadlineExceeded) {
			t.Errorf("%v does not say why", results[0].Err)
		}
		wake()
		// The late replies belong to no call and must not reach the next call.
		next, err := l.Do(t.Context(), []api.Message{add(1), add(11), add(11)})
		if err != nil {
			t.Fatal(err)
		}
		if got := codes(next); got[0] != int32(api.VALUE_EXIST) || got[1] != 0 || got[2] != int32(api.VALUE_EXIST) {
			t.Errorf("next call = %v", got)
		}
		synctest.Wait()
		if _, n, _, _ := vpp.counters(); n != 13 {
			t.Errorf("VPP has seen %d mappings, want 10 and 3", n)
		}
		if !l.last().GetUp() {
			t.Errorf("connection ended: %v", l.last())
		}
	})
}

func TestCancelledBeforeAnythingWasSent(t *testing.T) {
	bubble(t, Config{}, func(t *testing.T, vpp *fakeVPP, l *running) {
		ctx, cancel := context.WithCancel(t.Context())
		wake := vpp.hang()
		defer wake()
		blocked := make(chan struct{})
		go func() {
			defer close(blocked)
			_, _ = l.Do(deadline(t, time.Second), adds(1000))
		}()
		synctest.Wait()
		time.AfterFunc(10*time.Millisecond, cancel)
		results, err := l.Do(ctx, adds(2))
		if !errors.Is(err, context.Canceled) || len(results) != 2 || !errors.Is(results[1].Err, ErrNotSent) {
			t.Errorf("Do = %v, %v", results, err)
		}
		<-blocked
	})
}
