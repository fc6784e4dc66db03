package agent

import (
	"testing"

	"github.com/troupe-vpp/troupe/bootstrap/api"
	"github.com/troupe-vpp/troupe/messages"
)

// TestFaulty: services with endpoints in the network of an interface with a fault are not in sync.
func TestFaulty(t *testing.T) {
	for name, tt := range map[string]struct {
		network   string
		state     api.ServiceState
		wantState api.ServiceState
		wantError string
	}{
		"an endpoint is behind it":   {"10.1.0.1/17", api.ServiceInSync, api.ServiceFailed, "endpoints behind bvi0: no answers"},
		"served partly":              {"10.1.0.1/17", api.ServicePartly, api.ServiceFailed, "endpoints behind bvi0: no answers"},
		"pending for another reason": {"10.1.0.1/17", api.ServicePending, api.ServicePending, ""},
		"no endpoint is behind it":   {"10.1.128.1/17", api.ServiceInSync, api.ServiceInSync, ""},
		"another family":             {"fd01::1/64", api.ServiceInSync, api.ServiceInSync, ""},
	} {
		out := api.Service{State: tt.state}
		faulty(&out, serviceStatus(nil).GetView(), []*messages.Interface{{Name: "bvi0", Addresses: []string{tt.network}, Fault: "no answers"}})
		if out.State != tt.wantState || out.Error != tt.wantError {
			t.Errorf("%s: %s, %q, want %s, %q", name, out.State, out.Error, tt.wantState, tt.wantError)
		}
	}
}
