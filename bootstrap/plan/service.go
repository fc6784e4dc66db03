package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/troupe-vpp/troupe/bootstrap/api"
	"github.com/troupe-vpp/troupe/kube/service"
	"github.com/troupe-vpp/troupe/messages"
)

// Service is the plan of one service in one line.
type Service struct {
	// Service is "namespace/name".
	Service string `json:"service"`
	// Plan is one of Words.
	Plan string `json:"plan"`
	// Frontends and Endpoints count its frontends and their distinct endpoints.
	Frontends int `json:"frontends"`
	Endpoints int `json:"endpoints"`
	// Why are the reasons for another plan than "as asked", each once.
	Why []string `json:"why"`
}

// Words are the values of Service.Plan.
func Words() []string { return []string{"as asked", "approximated", "refused", "not served"} }

// Summary counts the services by their plan, and services that no node serves by their kind:
// "3 services: 2 as asked, 1 headless".
func (r *Report) Summary() string {
	counts := map[string]int{}
	for i := range r.Services {
		word := r.Services[i].Plan
		if why := strings.Join(r.Services[i].Why, ""); why == "headless" || why == "ExternalName" {
			word = why
		}
		counts[word]++
	}
	var parts []string
	for _, word := range append(Words(), "headless", "ExternalName") {
		if n := counts[word]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, word))
		}
	}
	noun := "services"
	if len(r.Services) == 1 {
		noun = "service"
	}
	return strings.TrimSuffix(fmt.Sprintf("%d %s: %s", len(r.Services), noun, strings.Join(parts, ", ")), ": ")
}

// Only returns the parts of the plan that belong to some services.
func (r *Report) Only(chosen func(key string) bool) *Report {
	return &Report{
		Node:           r.Node,
		Services:       only(r.Services, func(s Service) bool { return chosen(s.Service) }),
		Frontends:      only(r.Frontends, func(f api.Frontend) bool { return chosen(f.Service) }),
		HealthChecks:   only(r.HealthChecks, func(h api.HealthCheck) bool { return chosen(h.Service) }),
		Rows:           only(r.Rows, func(row api.Row) bool { return chosen(row.Service) }),
		Beside:         only(r.Beside, func(b Beside) bool { return b.Service == "" || chosen(b.Service) }),
		Approximations: only(r.Approximations, func(a api.FrontendApproximation) bool { return chosen(a.Service) }),
		Problems:       r.Problems,
	}
}

func only[T any](all []T, chosen func(T) bool) []T {
	return slices.DeleteFunc(slices.Clone(all), func(one T) bool { return !chosen(one) })
}

// service is the line of a service whose rows and approximations are in the report.
func (r *Report) service(view *messages.ServiceView) Service {
	s := Service{Service: view.GetKey(), Frontends: len(view.GetFrontends()), Why: []string{}}
	endpoints := map[string]bool{}
	rejects, rows := 0, 0
	for _, f := range view.GetFrontends() {
		for _, b := range f.GetBackends() {
			endpoints[service.BackendText(b)] = true
		}
		if f.GetAction() == messages.Action_ACTION_REJECT {
			rejects++
		}
	}
	s.Endpoints = len(endpoints)
	for i := range r.Rows {
		if r.Rows[i].Service == s.Service {
			rows++
		}
	}
	for _, a := range r.Approximations {
		if text := a.Rendered + ": " + a.Why; a.Service == s.Service && !slices.Contains(s.Why, text) {
			s.Why = append(s.Why, text)
		}
	}
	none := cmp.Or(view.GetNotServed(), view.GetRefused())
	switch {
	case none != "":
		s.Plan, s.Why = "not served", []string{none}
	case rejects > 0 && rejects == s.Frontends:
		s.Plan, s.Why = "refused", append([]string{"no endpoint is ready"}, s.Why...)
	case rows == 0:
		s.Plan = "not served"
	case len(s.Why) > 0:
		s.Plan = "approximated"
	default:
		s.Plan = "as asked"
	}
	return s
}
