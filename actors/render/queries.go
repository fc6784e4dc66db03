package render

import (
	"context"
	"slices"

	"github.com/troupe-vpp/troupe/actors/command"
	"github.com/troupe-vpp/troupe/actors/runtime"
	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/heap"
)

// RowsQuery asks a renderer for the rows of one service. The answer is a RowsPage.
type RowsQuery struct {
	// Service is the key, "namespace/name".
	Service string
}

// RowsPage answers a RowsQuery.
type RowsPage struct {
	// Wanted are the rows that the service wants, including rows whose key has another owner.
	// Held are the rows in VPP under the keys that the service owns.
	Wanted, Held []*messages.RowState
}

func (d *Driver[K]) rows(q *RowsQuery) *RowsPage {
	page := &RowsPage{}
	page.Wanted, page.Held = d.kind.Rows(q.Service, d.known)
	return page
}

// DiffQuery asks a renderer to read VPP and to compare it with the wanted objects, without changing
// anything. The answer is a DiffPage.
type DiffQuery struct{}

// DiffPage answers a DiffQuery.
type DiffPage struct {
	// Operations, each as one line, would make VPP equal to the wanted objects; empty = it is
	// equal. Objects has the object of each (Difference.Object), Missing the missing ones.
	Operations, Objects, Missing []string
	// Err is why VPP could not be read; nil = it was read.
	Err error
}

// diffRead carries the reading for a DiffQuery from its goroutine to the actor.
type diffRead struct {
	to      *runtime.PID
	reading any
	err     error
}

// diff reads VPP in a goroutine; the renderer goes on meanwhile.
func (d *Driver[K]) diff(c *runtime.Context) {
	to := c.Sender()
	if to == nil {
		return
	}
	if !d.connection.link.GetUp() || !d.located() {
		c.Send(to, &DiffPage{Err: command.ErrNotConnected})
		return
	}
	read, vpp, post := d.kind.Reader(false), d.config.VPP, c.Post()
	c.Go("diff", func(ctx context.Context) {
		reading, err := read(ctx, vpp)
		post(&diffRead{to, reading, err})
	})
}

// diffed answers a DiffQuery from its reading.
func (d *Driver[K]) diffed(c *runtime.Context, m *diffRead) {
	page := &DiffPage{Err: m.err}
	if m.err == nil {
		d.settle(c)
		for _, one := range d.kind.Diff(m.reading, d.barrier.passed()) {
			page.Operations, page.Objects = append(page.Operations, one.Text), append(page.Objects, one.Object)
			if one.Missing {
				page.Missing = append(page.Missing, one.Object)
			}
		}
	}
	c.Send(m.to, page)
}

// DryRun returns the acknowledgement of each service, in the order of the views, as if VPP were
// connected and empty. The rows are the ones that would be installed. The renderer must be new.
func DryRun[K Key](r Renderer[K], begin *messages.Begin, views []*messages.ServiceView) []*messages.RenderAck {
	// nothing is under way
	r.progress(newQueue(r.Claims, r.Kind.Next), &connection{}, &heap.Reserve{})
	r.Kind.Settle(Surroundings{Begin: begin})
	for _, view := range views {
		r.Kind.Plan(view.GetKey(), view)
	}
	r.Kind.Settle(Surroundings{Begin: begin, Phase: Passed})
	acks := make([]*messages.RenderAck, len(views))
	for i, view := range views {
		key := view.GetKey()
		acks[i] = &messages.RenderAck{Key: key, Renderer: r.Name}
		for _, k := range r.Claims.Objects(key) {
			if owner := r.Claims.Owner(k); owner != "" && owner != key {
				acks[i].Conflicts = append(acks[i].Conflicts, &messages.Conflict{Frontend: k.String(), Owner: owner})
			}
		}
		r.Kind.Acknowledge(acks[i], key, false)
		refused := map[string]bool{}
		for _, row := range acks[i].GetRows() {
			refused[row.GetVip()] = row.GetError() != ""
		}
		wanted, _ := r.Kind.Rows(key, false)
		acks[i].Rows = slices.DeleteFunc(wanted, func(r *messages.RowState) bool { return refused[r.GetVip()] })
	}
	return acks
}
