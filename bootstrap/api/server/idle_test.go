package server_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/troupe-vpp/troupe/bootstrap/api"
	"github.com/troupe-vpp/troupe/bootstrap/api/apitest"
	"github.com/troupe-vpp/troupe/bootstrap/api/server"
)

// counting counts the queries of the journal.
type counting struct {
	*apitest.Troupe
	queries atomic.Int64
}

func (c *counting) Events(ctx context.Context, q api.EventQuery) (*api.EventPage, error) {
	c.queries.Add(1)
	return c.Troupe.Events(ctx, q)
}

// TestNothingWhenNobodyLooks: a trace queries the journal at most five times a second, and after
// the client has gone nothing does.
func TestNothingWhenNobodyLooks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		backend := &counting{Troupe: apitest.New(3)}
		handler := server.New(backend, server.Config{}, slog.New(slog.DiscardHandler)).Handler(true)
		ctx, leave := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(ctx, http.MethodGet, "/api/v1/trace", http.NoBody))
		}()
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if n := backend.queries.Load(); n < 10 || n > 51 {
			t.Errorf("%d queries in 10 s", n)
		}
		leave()
		<-done
		after := backend.queries.Load()
		time.Sleep(time.Hour)
		synctest.Wait()
		if n := backend.queries.Load(); n != after {
			t.Errorf("%d queries after the client has gone", n-after)
		}
	})
}

// TestTopOverAWindow: only activity within the window counts, and no activity of an earlier actor
// of the same name.
func TestTopOverAWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		backend := apitest.New(0)
		kill := func(times int) {
			for range times {
				if err := backend.Command(t.Context(), "agent/dataplane/nat44", api.VerbKill); err != nil {
					t.Error(err)
				}
			}
		}
		kill(3)
		go func() {
			time.Sleep(time.Second)
			kill(2)
		}()
		w := httptest.NewRecorder()
		handler := server.New(backend, server.Config{}, slog.New(slog.DiscardHandler)).Handler(true)
		handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/api/v1/top?by=failures&window=2s&limit=1", http.NoBody))
		var page api.Page[api.Actor]
		if err := json.Unmarshal(w.Body.Bytes(), &page); err != nil || len(page.Items) != 1 || page.Items[0].Failures != 2 || page.Items[0].Path != "agent/dataplane/nat44" {
			t.Errorf("%s %v", w.Body, err)
		}
		for _, window := range []string{"6s", "0s", "-1s", "x"} {
			w := httptest.NewRecorder()
			handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/api/v1/top?window="+window, http.NoBody))
			if w.Code != http.StatusBadRequest {
				t.Errorf("%s: %d", window, w.Code)
			}
		}
	})
}
