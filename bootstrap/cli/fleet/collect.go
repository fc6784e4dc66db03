package fleet

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
	"github.com/troupe-vpp/troupe/bootstrap/cli"
)

const (
	// mostEvents is the largest number of events of a node in an archive.
	mostEvents = 5000
	// mostDetails is the largest number of services of a node with their frontends and rows.
	mostDetails = 500
)

// collector collects one node.
type collector struct {
	*api.Dump
	client *cli.Client
	// left is the number of bytes of JSON that the node may still have.
	left int64
}

// collect queries the agent of a node for all parts, in the order of importance, until ctx ends or
// the answers of the agent have limit bytes in all. Errors has the missing parts. name is the name
// of the node in the cluster; an agent that has another one is an error.
func collect(ctx context.Context, c *cli.Client, name string, limit int64) *api.Dump {
	n := &collector{Dump: &api.Dump{Name: name, Details: map[string]*api.ServiceDetail{}}, client: c.Limited(cli.NewBudget(limit)), left: limit}
	if n.Status = one[api.NodeStatus](ctx, n, "status"); n.Status != nil && n.Status.Node != name {
		n.Status = nil
		n.failed(ctx, "status", errors.New("the agent has the name of another node"))
	}
	n.readiness(ctx)
	n.Resync = one[api.Resync](ctx, n, "resync")
	n.Services = all[api.Service](ctx, n, "services")
	n.Interfaces = whole[api.Interfaces, api.Interface](ctx, n, "interfaces")
	n.Addresses = whole[api.Addresses, api.Address](ctx, n, "addresses")
	n.Nodes = whole[api.Nodes, api.Node](ctx, n, "nodes")
	n.Sessions = one[api.Sessions](ctx, n, "sessions")
	n.Diff = one[api.Diff](ctx, n, "diff")
	n.Chaos = one[live.Status](ctx, n, "chaos")
	n.text(ctx)
	n.external(ctx)
	n.events(ctx)
	n.details(ctx)
	n.Actors = all[api.Actor](ctx, n, "actors")
	return n.Dump
}

// failed records a part that could not be collected. It ignores a part that the agent does not
// have.
func (n *collector) failed(ctx context.Context, part string, err error) {
	switch {
	case errors.Is(err, api.ErrUnsupported):
		return
	case ctx.Err() != nil:
		err = errors.New("no time left")
	case errors.Is(err, cli.ErrTooLarge):
		err = cli.ErrTooLarge
	}
	n.Errors = append(n.Errors, part+": "+err.Error())
}

// fits subtracts the size of a part from the bytes that are left.
func (n *collector) fits(value any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return err
	}
	if n.left -= int64(len(text)); n.left < 0 {
		return cli.ErrTooLarge
	}
	return nil
}

// keep is a part that was collected and fits; the zero value = it has failed.
func keep[T any](ctx context.Context, n *collector, part string, value T, err error) (none T) {
	if err == nil {
		err = n.fits(value)
	}
	if err != nil {
		n.failed(ctx, part, err)
		return none
	}
	return value
}

// one collects a resource without pages.
func one[T any](ctx context.Context, n *collector, resource string) *T {
	value := new(T)
	return keep(ctx, n, resource, value, n.client.Get(ctx, resource, nil, value))
}

// all collects a list.
func all[T any](ctx context.Context, n *collector, resource string) []T {
	items, _, err := cli.All[T](ctx, n.client, resource, nil, 0)
	return keep(ctx, n, resource, items, err)
}

// whole collects a resource that has fields besides its list.
func whole[T, I any, P api.Paged[T, I]](ctx context.Context, n *collector, resource string) *T {
	value, err := cli.Whole[T, I, P](ctx, n.client, resource)
	return keep(ctx, n, resource, value, err)
}

// readiness collects the parts of the agent.
func (n *collector) readiness(ctx context.Context) {
	text, status, err := n.client.Text(ctx, "readyz?verbose")
	text = keep(ctx, n, "readyz", text, err)
	n.Readiness = readinessOf(text, text != "" && status == http.StatusOK)
	if n.Status != nil {
		n.Readiness.Since = n.Status.Since
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
	n.Metrics = keep(ctx, n, "metrics", text, err)
}

// external collects external configuration without its documents.
func (n *collector) external(ctx context.Context) {
	n.External = whole[api.External, api.ExternalEntry](ctx, n, "external")
	if n.External != nil {
		for i := range n.External.Layers {
			n.External.Layers[i].Document = nil
		}
	}
}

// events collects the end of the journal.
func (n *collector) events(ctx context.Context) {
	query := url.Values{"limit": {fmt.Sprint(api.MaxLimit)}}
	for before := uint64(0); len(n.Events) < mostEvents; {
		var page api.EventPage
		err := n.client.Get(ctx, "events", query, &page)
		if err == nil {
			err = n.fits(page)
		}
		if err != nil {
			n.failed(ctx, "events", err)
			return
		}
		n.Events = append(n.Events, page.Items...)
		if page.Next == 0 {
			return
		}
		if len(page.Items) > api.MaxLimit || before != 0 && page.Next >= before {
			n.failed(ctx, "events", errors.New("the pages do not end"))
			return
		}
		before = page.Next
		query.Set("before", fmt.Sprint(page.Next))
	}
}

// details collects services. Services that are not in sync come first.
func (n *collector) details(ctx context.Context) {
	order := slices.Clone(n.Services)
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
		detail := &api.ServiceDetail{}
		if namespace, name, ok := strings.Cut(order[i].Key, "/"); !ok || !isName(namespace) || !isName(name) {
			n.failed(ctx, "service", fmt.Errorf("%q is no key of a service", order[i].Key))
			return
		}
		err := n.client.Get(ctx, "services/"+order[i].Key, nil, detail) // a key needs no escaping
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
