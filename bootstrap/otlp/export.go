package otlp

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/troupe-vpp/troupe/bootstrap/api"
	"github.com/troupe-vpp/troupe/kube/outbound"
)

const (
	interval    = time.Second     // between two queries of the journal
	sendTimeout = 5 * time.Second // of one document
)

// Exporter sends traces of changes. Its fields are constant.
type Exporter struct {
	// Endpoint is the address of the collector, "http://127.0.0.1:4318".
	Endpoint string
	// Node is the name of the node.
	Node string
	// Events queries the journal.
	Events func(ctx context.Context, q api.EventQuery) (*api.EventPage, error)
	// Log gets a line when the collector begins to fail, and when it is back.
	Log *slog.Logger
}

// Run sends traces until ctx ends, and returns nil. Traces that the collector refuses are lost,
// because they must not fill memory.
func (x *Exporter) Run(ctx context.Context) error {
	run := strconv.FormatInt(time.Now().UnixNano(), 10)
	base, err := url.Parse(x.Endpoint)
	if err != nil {
		return fmt.Errorf("read the address of the collector: %w", err)
	}
	client := outbound.Client(base, http.DefaultTransport, sendTimeout)
	defer client.CloseIdleConnections()
	tick := time.NewTicker(interval)
	defer tick.Stop()
	var (
		pending changes
		after   uint64
		failing bool
	)
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		after = x.read(ctx, &pending, after)
		complete := pending.take(time.Now())
		if len(complete) == 0 {
			continue
		}
		err := x.send(ctx, client, documentOf(x.Node, run, complete))
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil && !failing:
			x.Log.Warn("traces are lost, because the collector does not take them", "endpoint", x.Endpoint, "err", err)
		case err == nil && failing:
			x.Log.Info("the collector takes traces again", "endpoint", x.Endpoint)
		}
		failing = err != nil
	}
}

// read adds the events after a number and returns the number of the last one. While the journal
// does not answer there are no events.
func (x *Exporter) read(ctx context.Context, pending *changes, after uint64) uint64 {
	var events []api.Event
	query := api.EventQuery{After: after, Limit: api.MaxLimit}
	for {
		page, err := x.Events(ctx, query)
		if err != nil {
			return after
		}
		events = append(events, page.Items...)
		if page.Next == 0 {
			break
		}
		query.Before = page.Next
	}
	slices.Reverse(events)
	pending.add(events)
	if len(events) > 0 {
		after = events[len(events)-1].Seq
	}
	return after
}

// send posts a document.
func (x *Exporter) send(ctx context.Context, client *http.Client, d *document) error {
	content, err := json.Marshal(d)
	if err != nil {
		return fmt.Errorf("encode traces: %w", err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, strings.TrimSuffix(x.Endpoint, "/")+"/v1/traces", bytes.NewReader(content))
	if err != nil {
		return fmt.Errorf("make request: %w", err)
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	// a part of the reason is better than no reason
	said, _ := io.ReadAll(io.LimitReader(response.Body, 200))
	if response.StatusCode/100 != 2 {
		return fmt.Errorf("%s: %s", response.Status, strings.TrimSpace(string(said)))
	}
	return nil
}
