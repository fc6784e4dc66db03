package agent

import (
	"github.com/troupe-vpp/troupe/bootstrap/api"
	"github.com/troupe-vpp/troupe/kube/service"
	"github.com/troupe-vpp/troupe/messages"
)

// served says what users of a service in this state get. Frontends that drop packets here do not
// count beside others: a traffic policy leaves them to other nodes.
func served(s *messages.ServiceStatus, state api.ServiceState) api.Served {
	held, taken := map[string]bool{}, map[string]bool{}
	for _, r := range s.GetRenders() {
		for _, row := range r.GetRows() {
			held[row.GetVip()] = held[row.GetVip()] || row.GetInSync()
		}
		for _, c := range r.GetConflicts() {
			taken[c.GetFrontend()] = true
		}
	}
	lacking := unserved(s)
	var good, refused, waiting, not int
	for _, f := range s.GetView().GetFrontends() {
		text := service.FrontendText(f)
		particular, lacks := lacking[text]
		switch {
		case lacks && !particular: // its family is left out on purpose
		case lacks || taken[text]:
			not++
		case f.GetAction() == messages.Action_ACTION_DROP:
		case f.GetAction() == messages.Action_ACTION_REJECT && state != api.ServicePending:
			refused++
		case held[text]:
			good++
		case state == api.ServicePending:
			waiting++
		default:
			not++
		}
	}
	switch {
	case good > 0 && refused+waiting+not == 0:
		return api.ServedAll
	case good > 0:
		return api.ServedPartly
	case waiting > 0:
		return api.ServedWaiting
	case refused > 0:
		return api.ServedRefused
	default:
		return api.ServedNone
	}
}
