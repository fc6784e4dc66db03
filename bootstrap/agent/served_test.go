package agent

import (
	"testing"

	"github.com/troupe-vpp/troupe/bootstrap/api"
	"github.com/troupe-vpp/troupe/messages"
)

// TestServed: the rows in VPP and the actions of the frontends decide what users get.
func TestServed(t *testing.T) {
	const forward, reject, drop = messages.Action_ACTION_FORWARD, messages.Action_ACTION_REJECT, messages.Action_ACTION_DROP
	for name, tt := range map[string]struct {
		actions        []messages.Action
		rows           int // of the first frontends
		state          api.ServiceState
		unrendered     string
		general        string
		conflict, lost string
		want           api.Served
	}{
		"all rows are in VPP":              {actions: []messages.Action{forward, forward}, rows: 2, want: api.ServedAll},
		"no endpoint is ready":             {actions: []messages.Action{reject, reject}, want: api.ServedRefused},
		"one port has no endpoint":         {actions: []messages.Action{forward, reject}, rows: 1, want: api.ServedPartly},
		"other nodes serve the rest":       {actions: []messages.Action{forward, drop}, rows: 1, want: api.ServedAll},
		"only other nodes serve":           {actions: []messages.Action{drop}, want: api.ServedNone},
		"new":                              {actions: []messages.Action{forward}, state: api.ServicePending, want: api.ServedWaiting},
		"new without endpoints":            {actions: []messages.Action{reject}, state: api.ServicePending, want: api.ServedWaiting},
		"one row is not in VPP yet":        {actions: []messages.Action{forward, forward}, rows: 1, state: api.ServicePending, want: api.ServedPartly},
		"VPP refuses the row":              {actions: []messages.Action{forward}, state: api.ServiceFailed, want: api.ServedNone},
		"no frontends":                     {state: api.ServiceNotServed, want: api.ServedNone},
		"VPP cannot serve one":             {actions: []messages.Action{forward, forward}, rows: 1, unrendered: "10.0.0.2:80/TCP", want: api.ServedPartly},
		"the other family is left out":     {actions: []messages.Action{forward, forward}, rows: 1, unrendered: "10.0.0.2:80/TCP", general: "IPv4 only", want: api.ServedAll},
		"another service has one address":  {actions: []messages.Action{forward, forward}, rows: 1, conflict: "10.0.0.2:80/TCP", want: api.ServedPartly},
		"one endpoint cannot be reached":   {actions: []messages.Action{forward, forward}, rows: 2, lost: "10.1.0.1", want: api.ServedPartly},
		"the only endpoint is not reached": {actions: []messages.Action{forward}, rows: 1, lost: "10.1.0.1", want: api.ServedNone},
	} {
		ack, view := &messages.RenderAck{}, &messages.ServiceView{}
		for i, action := range tt.actions {
			f := &messages.Frontend{Address: "10.0.0." + string(rune('1'+i)), Port: 80, Protocol: messages.Protocol_TCP, Action: action}
			if action == forward {
				f.Backends = []*messages.Backend{{Address: "10.1.0." + string(rune('1'+i)), Port: 8080}}
				ack.Rows = append(ack.Rows, &messages.RowState{Vip: f.GetAddress() + ":80/TCP", InSync: i < tt.rows})
			}
			view.Frontends = append(view.Frontends, f)
		}
		if tt.unrendered != "" {
			ack.Unrendered = []*messages.ObjectError{{Message: "frontend " + tt.unrendered + " is not served", General: tt.general}}
		}
		if tt.conflict != "" {
			ack.Conflicts = []*messages.Conflict{{Frontend: tt.conflict}}
		}
		got := served(&messages.ServiceStatus{View: view, Renders: []*messages.RenderAck{ack}}, tt.state)
		if got == api.ServedAll {
			got = faults{tt.lost: "no interface"}.served(view)
		}
		if got != tt.want {
			t.Errorf("%s: %s, want %s", name, got, tt.want)
		}
	}
	for _, word := range api.ServedWords() {
		if word.Why() == "" {
			t.Errorf("%s is not explained", word)
		}
	}
}
