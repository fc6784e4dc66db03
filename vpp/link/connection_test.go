package link

import (
	"encoding/binary"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/nat44_ed"
)

// onMapping applies a fault to the nth mapping from now on (1 = next).
func onMapping(vpp *fakeVPP, nth int, fault func(c *fakeConn, frames [][]byte) [][]byte) {
	vpp.setFault(func(c *fakeConn, req api.Message, frames [][]byte) [][]byte {
		if _, mapping := req.(*nat44_ed.Nat44AddDelLbStaticMapping); mapping {
			if nth--; nth == 0 {
				return fault(c, frames)
			}
		}
		return frames
	})
}

// partition checks that results are n successes, then unknown ones, then ones that were not sent,
// and returns the last two numbers.
func partition(t *testing.T, results []Result, n int) (unknown, unsent int) {
	t.Helper()
	for i, code := range codes(results) {
		switch {
		case i < n && code == 0:
		case i >= n && unsent == 0 && code == codeUnknown:
			unknown++
		case i >= n && code == codeNotSent:
			unsent++
		default:
			t.Fatalf("result %d = %d (%v)", i, code, results[i].Err)
		}
	}
	return unknown, unsent
}

func TestCrashInTheMiddleOfABatch(t *testing.T) {
	bubble(t, Config{Window: 16}, func(t *testing.T, vpp *fakeVPP, l *running) {
		onMapping(vpp, 101, func(c *fakeConn, _ [][]byte) [][]byte {
			vpp.stopped = true
			c.end()
			return nil
		})
		results, err := l.Do(t.Context(), adds(1000))
		if err != nil {
			t.Fatal(err)
		}
		unknown, unsent := partition(t, results, 100)
		if unknown == 0 || unknown > 16 || unsent != 900-unknown {
			t.Errorf("%d unknown, %d not sent", unknown, unsent)
		}
		synctest.Wait()
		if s := l.last(); s.GetUp() || s.GetReason() == "" || s.GetSession() != 1 {
			t.Errorf("state = %v", s)
		}
		if _, err := l.Do(t.Context(), adds(1)); !errors.Is(err, ErrDown) {
			t.Errorf("Do after the loss = %v", err)
		}
	})
}

func TestRestartWithOtherNumbers(t *testing.T) {
	bubble(t, Config{}, func(t *testing.T, vpp *fakeVPP, l *running) {
		before := l.last()
		for round := range uint64(3) {
			if _, err := l.Do(t.Context(), adds(10)); err != nil {
				t.Fatal(err)
			}
			vpp.crash()
			time.Sleep(time.Second)
			if l.last().GetUp() {
				t.Fatal("crash unnoticed")
			}
			vpp.restart()
			time.Sleep(3 * time.Second)
			after := l.last()
			if !after.GetUp() || after.GetSession() != round+2 || after.GetBoot() == before.GetBoot() || after.GetVersion() != "25.10-fake" {
				t.Fatalf("state after restart = %v, before %v", after, before)
			}
			before = after
			if got, err := ports(t, l); err != nil || len(got) != 0 {
				t.Errorf("dump after restart = %v, %v", got, err)
			}
		}
	})
}

func TestReconnectToTheSameVPP(t *testing.T) {
	bubble(t, Config{}, func(t *testing.T, vpp *fakeVPP, l *running) {
		before := l.last()
		vpp.mu.Lock()
		for c := range vpp.conns {
			c.end()
		}
		vpp.mu.Unlock()
		time.Sleep(2 * time.Second)
		after := l.last()
		if !after.GetUp() || after.GetSession() != 2 || after.GetBoot() != before.GetBoot() {
			t.Errorf("state = %v, before %v", after, before)
		}
	})
}

func TestLossWhileIdleIsFoundByTheProbe(t *testing.T) {
	bubble(t, Config{ProbeInterval: 500 * time.Millisecond}, func(t *testing.T, vpp *fakeVPP, l *running) {
		time.Sleep(10 * time.Second)
		if s := l.last(); !s.GetUp() {
			t.Fatalf("state = %v", s)
		}
		vpp.crash()
		time.Sleep(501 * time.Millisecond)
		if s := l.last(); s.GetUp() || !strings.Contains(s.GetReason(), "broken pipe") && !strings.Contains(s.GetReason(), "refused") {
			t.Errorf("state = %v", s)
		}
	})
}

func TestProbesOnlyFillSilence(t *testing.T) {
	bubble(t, Config{}, func(t *testing.T, vpp *fakeVPP, l *running) {
		_, _, before, _ := vpp.counters()
		for i := range 100 {
			if _, err := l.Do(t.Context(), []api.Message{add(uint16(i + 1))}); err != nil {
				t.Fatal(err)
			}
			time.Sleep(100 * time.Millisecond)
		}
		if _, _, after, _ := vpp.counters(); after != before {
			t.Errorf("%d probes although VPP was answering", after-before)
		}
		_, _, before, _ = vpp.counters()
		time.Sleep(10 * time.Second)
		if _, _, after, _ := vpp.counters(); after-before < 18 || after-before > 21 {
			t.Errorf("%d probes in 10 s of silence", after-before)
		}
	})
}

func TestHungVPP(t *testing.T) {
	bubble(t, Config{ReplyTimeout: 2 * time.Second, ConnectTimeout: time.Second}, func(t *testing.T, vpp *fakeVPP, l *running) {
		// between two probes, so that none of them is the first to hang
		time.Sleep(1100 * time.Millisecond)
		wake := vpp.hang()
		began := time.Now()
		results, err := l.Do(t.Context(), adds(1000))
		if err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took != 2*time.Second {
			t.Errorf("gave up after %s", took)
		}
		if unknown, _ := partition(t, results, 0); unknown != 16 {
			t.Errorf("%d unknown", unknown)
		}
		if !errors.Is(results[0].Err, ErrTimeout) {
			t.Errorf("%v does not say why", results[0].Err)
		}
		synctest.Wait()
		if s := l.last(); s.GetUp() || !strings.Contains(s.GetReason(), "nat44_add_del_lb_static_mapping") {
			t.Errorf("state = %v", s)
		}
		// The same process again: it accepts connections and does not answer.
		time.Sleep(20 * time.Second)
		if s := l.last(); s.GetUp() || !strings.Contains(s.GetReason(), ErrTimeout.Error()) {
			t.Errorf("state = %v", s)
		}
		wake()
		time.Sleep(5 * time.Second)
		if s := l.last(); !s.GetUp() || s.GetSession() != 2 {
			t.Errorf("state = %v", s)
		}
	})
}

func TestHungWhileIdle(t *testing.T) {
	bubble(t, Config{}, func(t *testing.T, vpp *fakeVPP, l *running) {
		wake := vpp.hang()
		defer wake()
		time.Sleep(5*time.Second + 510*time.Millisecond)
		if s := l.last(); s.GetUp() {
			t.Errorf("state = %v", s)
		}
	})
}

func TestSlowButAlive(t *testing.T) {
	bubble(t, Config{ReplyTimeout: time.Second}, func(t *testing.T, vpp *fakeVPP, l *running) {
		vpp.mu.Lock()
		vpp.pace = 900 * time.Millisecond
		vpp.mu.Unlock()
		// The last request waits for far longer than the timeout, but the oldest one never
		// does.
		results, err := l.Do(t.Context(), adds(50))
		if err != nil {
			t.Fatal(err)
		}
		if unknown, unsent := partition(t, results, 50); unknown+unsent != 0 || !l.last().GetUp() {
			t.Errorf("%d unknown, state %v", unknown, l.last())
		}
	})
}

func TestLostReply(t *testing.T) {
	bubble(t, Config{Window: 8}, func(t *testing.T, vpp *fakeVPP, l *running) {
		onMapping(vpp, 50, func(*fakeConn, [][]byte) [][]byte { return nil })
		began := time.Now()
		results, err := l.Do(t.Context(), adds(1000))
		if err != nil {
			t.Fatal(err)
		}
		got := codes(results)
		if got[48] != 0 || got[49] != codeUnknown || got[50] != 0 || got[999] != codeNotSent {
			t.Errorf("around the lost reply: %v, last %d", got[47:53], got[999])
		}
		if took := time.Since(began); took != 5*time.Second {
			t.Errorf("noticed after %s", took)
		}
		synctest.Wait()
		if l.last().GetUp() {
			t.Error("connection goes on without the reply")
		}
		vpp.setFault(nil)
		time.Sleep(3 * time.Second)
		if results, err := l.Do(t.Context(), []api.Message{add(50)}); err != nil || !errors.Is(results[0].Err, api.VALUE_EXIST) {
			t.Errorf("read back = %v, %v; VPP had executed the request", results, err)
		}
	})
}

func TestRepliesOfAnEarlierConnectionAreDropped(t *testing.T) {
	bubble(t, Config{ReplyTimeout: time.Second}, func(t *testing.T, vpp *fakeVPP, l *running) {
		var held []func()
		vpp.setFault(func(c *fakeConn, req api.Message, frames [][]byte) [][]byte {
			if _, mapping := req.(*nat44_ed.Nat44AddDelLbStaticMapping); mapping {
				held = append(held, func() {
					for _, f := range frames {
						c.notify(binary.BigEndian.Uint16(f), f)
					}
				})
				return nil
			}
			return frames
		})
		if _, err := l.Do(t.Context(), adds(3)); err != nil {
			t.Fatal(err)
		}
		vpp.setFault(nil)
		time.Sleep(3 * time.Second)
		if s := l.last(); !s.GetUp() || s.GetSession() != 2 {
			t.Fatalf("state = %v", s)
		}
		for _, late := range held {
			late()
		}
		results, err := l.Do(t.Context(), []api.Message{add(1), add(9)})
		if err != nil || codes(results)[0] != int32(api.VALUE_EXIST) || codes(results)[1] != 0 {
			t.Errorf("Do = %v, %v", codes(results), err)
		}
	})
}

func TestEvents(t *testing.T) {
	var hints atomic.Int64
	cfg := Config{OnEvent: func() { hints.Add(1) }}
	bubble(t, cfg, func(t *testing.T, vpp *fakeVPP, l *running) {
		if got := hints.Load(); got != 1 {
			t.Errorf("%d hints after connecting, want 1", got)
		}
		for range 5 {
			vpp.event()
			synctest.Wait()
		}
		if got := hints.Load(); got != 6 {
			t.Errorf("%d hints, want one per event", got)
		}
		vpp.crash()
		vpp.restart()
		time.Sleep(3 * time.Second)
		if _, _, _, subscriptions := vpp.counters(); subscriptions != 2 {
			t.Errorf("%d subscriptions, want one per connection", subscriptions)
		}
		vpp.event()
		synctest.Wait()
		if got := hints.Load(); got != 8 {
			t.Errorf("%d hints, want one more for the connection and one for the event", got)
		}
	})
}

func TestEventsWithoutSubscriber(t *testing.T) {
	bubble(t, Config{}, func(t *testing.T, vpp *fakeVPP, l *running) {
		if _, _, _, subscriptions := vpp.counters(); subscriptions != 0 {
			t.Errorf("%d subscriptions", subscriptions)
		}
	})
}

func TestVPPWithoutEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		vpp := newFakeVPP()
		vpp.missing["sw_interface_event"] = true
		vpp.missing["show_version"] = true
		l := start(t, Config{transport: vpp.adapter, OnEvent: func() {}})
		defer l.stop()
		synctest.Wait()
		if s := l.last(); !s.GetUp() || s.GetVersion() != "" {
			t.Errorf("state = %v", s)
		}
	})
}

func TestVPPWithoutPing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		vpp := newFakeVPP()
		vpp.missing["control_ping"] = true
		l := start(t, Config{transport: vpp.adapter})
		defer l.stop()
		time.Sleep(time.Minute)
		if s := l.last(); s.GetUp() || !strings.Contains(s.GetReason(), "control_ping_51077d14") {
			t.Errorf("state = %v", s)
		}
	})
}

func TestRunEndsAtOnce(t *testing.T) {
	bubble(t, Config{}, func(t *testing.T, vpp *fakeVPP, l *running) {
		wake := vpp.hang()
		defer wake()
		done := make(chan []Result)
		go func() {
			results, _ := l.Do(t.Context(), adds(1000))
			done <- results
		}()
		synctest.Wait()
		began := time.Now()
		l.stop()
		if took := time.Since(began); took != 0 {
			t.Errorf("Run took %s to end", took)
		}
		if unknown, _ := partition(t, <-done, 0); unknown != 16 {
			t.Errorf("%d unknown", unknown)
		}
		if s := l.last(); s.GetUp() || s.GetReason() != "closed" && !strings.Contains(s.GetReason(), "closed") {
			t.Errorf("state = %v", s)
		}
	})
}

func TestStampThatChangesWhileConnecting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		vpp := newFakeVPP()
		stamps := []string{"a", "b", "c", "c"}
		l := start(t, Config{transport: vpp.adapter, Stamp: func() (string, error) {
			stamp := stamps[0]
			if len(stamps) > 1 {
				stamps = stamps[1:]
			}
			return stamp, nil
		}})
		defer l.stop()
		time.Sleep(time.Second)
		states := l.history()
		if len(states) != 3 || states[1].GetUp() || !states[2].GetUp() || states[2].GetBoot() != "pid100@c" {
			t.Errorf("states = %v", states)
		}
	})
}

func TestSecondRun(t *testing.T) {
	bubble(t, Config{}, func(t *testing.T, vpp *fakeVPP, l *running) {
		if err := l.Run(t.Context(), nil); !errors.Is(err, ErrRunning) {
			t.Errorf("Run = %v", err)
		}
	})
}

func TestWatchdogThatWasLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := Config{}.withDefaults()
		s := newConnection(&cfg, newFakeVPP().adapter(), newRegistry(), quietLog())
		s.ping = &route{name: "control_ping"}
		began := time.Now()
		s.enter(pending{route: s.ping, sent: began})
		s.check(began.Add(time.Minute), time.Minute-cfg.ProbeInterval)
		if err := s.reason(); err != nil {
			t.Errorf("a process that stood still blames VPP: %v", err)
		}
		s.check(began.Add(time.Minute+cfg.ReplyTimeout), 0)
		if err := s.reason(); !errors.Is(err, ErrTimeout) {
			t.Errorf("reason = %v, want ErrTimeout", err)
		}
	})
}
