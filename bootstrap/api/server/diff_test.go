package server_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/troupe-vpp/troupe/bootstrap/api"
	"github.com/troupe-vpp/troupe/bootstrap/api/apitest"
	"github.com/troupe-vpp/troupe/bootstrap/api/server"
)

// differ is a server whose readings of VPP take a second; it counts them.
func differ() (tcp, control http.Handler, readings *atomic.Int64, fail *atomic.Bool) {
	backend := apitest.New(1)
	readings, fail = &atomic.Int64{}, &atomic.Bool{}
	backend.Hooks.Diff = func(ctx context.Context) error {
		readings.Add(1)
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
			return ctx.Err()
		}
		if fail.Load() {
			return errors.New("VPP is gone")
		}
		return nil
	}
	server := server.New(backend, server.Config{}, quiet())
	return server.Handler(false), server.Handler(true), readings, fail
}

// diffOf asks and returns the status and the time of the reading.
func diffOf(t *testing.T, h http.Handler) (int, time.Time) {
	t.Helper()
	w := httptest.NewRecorder()
	r := httptest.NewRequest(http.MethodGet, "/api/v1/diff", nil)
	r.Host = "localhost"
	h.ServeHTTP(w, r)
	var diff api.Diff
	if err := json.Unmarshal(w.Body.Bytes(), &diff); err != nil {
		t.Errorf("%v in %s", err, w.Body)
	}
	return w.Code, diff.Time
}

// TestDiffIsShared: VPP is read under a barrier that stops its workers. So clients on TCP, however
// many, cannot make the agent read it more than once in five seconds. The control socket reads VPP
// now, with one reading for all that wait.
func TestDiffIsShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tcp, control, readings, _ := differ()
		began := time.Now()
		crowd := func(h http.Handler, want time.Time) {
			t.Helper()
			var all sync.WaitGroup
			for range 20 {
				all.Go(func() {
					if code, read := diffOf(t, h); code != http.StatusOK || !read.Equal(want) {
						t.Errorf("%d, read at %v, want %v", code, read.Sub(began), want.Sub(began))
					}
				})
			}
			all.Wait()
		}
		expect := func(what string, want int64) {
			t.Helper()
			if got := readings.Load(); got != want {
				t.Errorf("%s: %d readings, want %d", what, got, want)
			}
		}
		crowd(tcp, began)
		expect("at the same time", 1)
		time.Sleep(4 * time.Second)
		crowd(tcp, began)
		expect("within five seconds", 1)
		time.Sleep(2 * time.Second)
		crowd(tcp, began.Add(7*time.Second))
		expect("after five seconds", 2)
		crowd(control, began.Add(8*time.Second))
		expect("on the control socket", 3)
		crowd(tcp, began.Add(8*time.Second))
		expect("after one of the control socket", 3)

		// A client of the control socket that comes during a reading waits for the next
		// one, because the present reading may have begun before its change.
		time.Sleep(11 * time.Second)
		now := time.Now()
		var all sync.WaitGroup
		all.Go(func() { crowd(tcp, now) })
		time.Sleep(time.Second / 2)
		all.Go(func() { crowd(control, now.Add(time.Second)) })
		all.Wait()
		expect("during a reading", 5)
	})
}

// TestDiffErrorIsShared: a reading that fails costs as much as any other.
func TestDiffErrorIsShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tcp, _, readings, fail := differ()
		fail.Store(true)
		for range 3 {
			if code, _ := diffOf(t, tcp); code != http.StatusInternalServerError {
				t.Errorf("%d", code)
			}
		}
		time.Sleep(5 * time.Second)
		fail.Store(false)
		if code, _ := diffOf(t, tcp); code != http.StatusOK || readings.Load() != 2 {
			t.Errorf("%d, %d readings", code, readings.Load())
		}
	})
}

// TestDiffOutlivesItsFirstClient: other clients get a reading although the client that began it has
// disconnected.
func TestDiffOutlivesItsFirstClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tcp, _, readings, _ := differ()
		ctx, leave := context.WithCancel(t.Context())
		go func() {
			r := httptest.NewRequestWithContext(ctx, http.MethodGet, "/api/v1/diff", nil)
			r.Host = "localhost"
			tcp.ServeHTTP(httptest.NewRecorder(), r)
		}()
		synctest.Wait()
		leave()
		if code, _ := diffOf(t, tcp); code != http.StatusOK || readings.Load() != 1 {
			t.Errorf("%d, %d readings", code, readings.Load())
		}
	})
}

// TestDiffPanicIsAnswered: all waiting clients get an answer, and the next request starts a new
// reading.
func TestDiffPanicIsAnswered(t *testing.T) {
	backend := apitest.New(0)
	backend.Hooks.Diff = func(context.Context) error { panic("VPP is on fire") }
	a := apitest.Start(t, backend, nil)
	for _, client := range []*http.Client{tcp(a), control(a)} {
		if code, body, _ := call(t, client, http.MethodGet, "/api/v1/diff", ""); code != 500 || strings.Contains(body, "fire") {
			t.Errorf("%d %s", code, body)
		}
	}
	if code, _, _ := call(t, tcp(a), http.MethodGet, "/livez", ""); code != 200 {
		t.Error("the server is gone")
	}
}
