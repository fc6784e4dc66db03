package sysdump

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/troupe-vpp/troupe/actors/chaos/live"
	"github.com/troupe-vpp/troupe/bootstrap/api"
	"github.com/troupe-vpp/troupe/bootstrap/client"
)

const (
	// mostEvents is how many events of the journal a node has in an archive.
	mostEvents = 5000
	// mostDetails is how many services a node has with their frontends and rows.
	mostDetails = 500
)

// collector collects one node.
type collector struct {
	*Node
	client *client.Client
	// left is how many bytes of JSON the node may still have.
	left int64
}

// Collect asks an agent for everything, in the order of importance, until ctx ends or the node has
// as many bytes as it may have. What is missing is in Errors.
func Collect(ctx context.Context, c *client.Client, name string, limit int64) *Node {
	n := &collector{Node: &Node{Name: name, Details: map[string]*api.ServiceDetail{}}, client: c, left: limit}
	n.Stat = one[api.NodeStatus](ctx, n, "status")
	n.readiness(ctx)
	n.Progress = one[api.Resync](ctx, n, "resync")
	n.All = all[api.Service](ctx, n, "services", 0)
	n.Ifs = paged(ctx, n, "interfaces", func(into, page *api.Interfaces) string {
		page.Items = append(into.Items, page.Items...)
		*into = *page
		return page.Next
	})
	n.Cluster = paged(ctx, n, "nodes", func(into, page *api.Nodes) string {
		page.Items = append(into.Items, page.Items...)
		*into = *page
		return page.Next
	})
	n.Table = one[api.Sessions](ctx, n, "sessions")
	n.Difference = one[api.Diff](ctx, n, "diff")
	n.Faults = one[live.Status](ctx, n, "chaos")
	n.text(ctx)
	n.external(ctx)
	n.events(ctx)
	n.details(ctx)
	n.Troupe = all[api.Actor](ctx, n, "actors", 0)
	return n.Node
}

// failed notes what could not be collected.
func (n *collector) failed(ctx context.Context, part string, err error) {
	switch {
	case err == nil || errors.Is(err, api.ErrUnsupported):
		return
	case ctx.Err() != nil:
		err = errors.New("no time left")
	}
	n.Errors = append(n.Errors, part+": "+err.Error())
}

// fits takes the bytes of a part from those that are left.
func (n *collector) fits(value any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return err
	}
	if n.left -= int64(len(text)); n.left < 0 {
		return errors.New("above the limit of size")
	}
	return nil
}

// one collects a resource without pages; nil = it could not be had.
func one[T any](ctx context.Context, n *collector, resource string) *T {
	value := new(T)
	err := n.client.Get(ctx, resource, nil, value)
	if err == nil {
		err = n.fits(value)
	}
	if n.failed(ctx, resource, err); err != nil {
		return nil
	}
	return value
}

// all collects a list.
func all[T any](ctx context.Context, n *collector, resource string, most int) []T {
	items, _, err := client.All[T](ctx, n.client, resource, nil, most)
	if err == nil {
		err = n.fits(items)
	}
	if n.failed(ctx, resource, err); err != nil {
		return nil
	}
	return items
}

// paged collects a resource whose pages a function joins, which returns the cursor of the next one.
func paged[T any](ctx context.Context, n *collector, resource string, join func(into, page *T) (next string)) *T {
	whole := new(T)
	err := client.Pages(func(query url.Values) (string, error) {
		page := new(T)
		if err := n.client.Get(ctx, resource, query, page); err != nil {
			return "", err
		}
		return join(whole, page), nil
	})
	if err == nil {
		err = n.fits(whole)
	}
	if n.failed(ctx, resource, err); err != nil {
		return nil
	}
	return whole
}

// readiness collects the parts of the agent.
func (n *collector) readiness(ctx context.Context) {
	text, status, err := n.client.Text(ctx, "readyz?verbose")
	n.failed(ctx, "readyz", err)
	n.Readiness = readinessOf(text, status == http.StatusOK)
	if n.Stat != nil {
		n.Readiness.Since = n.Stat.Since
	}
}

// readinessOf reads the answer of /readyz?verbose.
func readinessOf(text string, ready bool) api.Readiness {
	r := api.Readiness{Ready: ready, Parts: []api.Part{}}
	for lines := bufio.NewScanner(strings.NewReader(text)); lines.Scan(); {
		line := lines.Text()
		if rest, ok := strings.CutPrefix(line, "[+]"); ok {
			name, reason, _ := strings.Cut(rest, " ok")
			r.Parts = append(r.Parts, api.Part{Name: name, OK: true, Reason: strings.TrimPrefix(reason, ": ")})
		} else if rest, failed := strings.CutPrefix(line, "[-]"); failed {
			name, reason, _ := strings.Cut(rest, " failed: ")
			r.Parts = append(r.Parts, api.Part{Name: name, Reason: reason})
		}
	}
	return r
}

// text collects the metrics.
func (n *collector) text(ctx context.Context) {
	text, status, err := n.client.Text(ctx, "metrics")
	if err == nil && status != http.StatusOK {
		err = fmt.Errorf("status %d", status)
	}
	if err == nil {
		err = n.fits(text)
	}
	if n.failed(ctx, "metrics", err); err == nil {
		n.Metrics = text
	}
}

// external collects external configuration without its documents.
func (n *collector) external(ctx context.Context) {
	n.Ext = paged(ctx, n, "external", func(into, page *api.External) string {
		page.Entries = append(into.Entries, page.Entries...)
		*into = *page
		return page.Next
	})
	if n.Ext != nil {
		for i := range n.Ext.Layers {
			n.Ext.Layers[i].Document = nil
		}
	}
}

// events collects the end of the journal.
func (n *collector) events(ctx context.Context) {
	query := url.Values{"limit": {fmt.Sprint(api.MaxLimit)}}
	for len(n.Journal) < mostEvents {
		var page api.EventPage
		err := n.client.Get(ctx, "events", query, &page)
		if err == nil {
			err = n.fits(page)
		}
		if n.failed(ctx, "events", err); err != nil {
			return
		}
		n.Journal = append(n.Journal, page.Items...)
		if page.Next == 0 {
			return
		}
		query.Set("before", fmt.Sprint(page.Next))
	}
}

// details collects services, those first that are not in sync.
func (n *collector) details(ctx context.Context) {
	order := slices.Clone(n.All)
	slices.SortStableFunc(order, func(a, b api.Service) int {
		rank := func(s api.Service) int {
			if s.State == api.ServiceInSync && s.Error == "" {
				return 1
			}
			return 0
		}
		return rank(a) - rank(b)
	})
	for i := range order {
		if i == mostDetails {
			n.failed(ctx, "service", fmt.Errorf("%d of %d services have no details", len(order)-i, len(order)))
			return
		}
		namespace, name, _ := strings.Cut(order[i].Key, "/")
		detail := &api.ServiceDetail{}
		err := n.client.Get(ctx, "services/"+url.PathEscape(namespace)+"/"+url.PathEscape(name), nil, detail)
		switch {
		case errors.Is(err, api.ErrNotFound):
			continue
		case err == nil:
			err = n.fits(detail)
		}
		if err != nil {
			n.failed(ctx, "service", fmt.Errorf("%d of %d services have no details: %w", len(order)-i, len(order), err))
			return
		}
		n.Details[order[i].Key] = detail
	}
}
