package demo

import (
	"github.com/troupe-vpp/troupe/bootstrap/api"
	"github.com/troupe-vpp/troupe/kube/service"
	"github.com/troupe-vpp/troupe/messages"
)

// States of a service in the table.
const (
	stateInSync  = string(api.ServiceInSync)
	statePending = string(api.ServicePending)
	stateFailed  = string(api.ServiceFailed)
)

// serviceRow summarises one service of an agent with this number of renderers.
func serviceRow(s *messages.ServiceStatus, renderers int) ServiceRow {
	row := ServiceRow{Service: s.GetKey(), Frontends: []string{}, State: stateInSync}
	backends := map[string]bool{}
	for _, f := range s.GetView().GetFrontends() {
		text := service.FrontendText(f)
		if n := len(row.Frontends); n == 0 || row.Frontends[n-1] != text {
			// a frontend may have two rows, for two classes of clients
			row.Frontends = append(row.Frontends, text)
		}
		for _, b := range f.GetBackends() {
			backends[service.BackendText(b)] = true
		}
	}
	row.Backends = len(backends)
	if len(s.GetRenders()) < renderers {
		row.State = statePending
	}
	for _, r := range s.GetRenders() {
		for _, held := range r.GetRows() {
			if held.GetInSync() {
				row.Rows++
			}
		}
		switch r.GetState() {
		case messages.RenderState_RENDER_PENDING:
			row.State = statePending
		case messages.RenderState_RENDER_FAILED:
			row.State = stateFailed
		}
	}
	if why := s.GetView().GetNotServed(); why != "" && row.State == stateInSync {
		row.State = why
	}
	return row
}
