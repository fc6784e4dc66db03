package normalize

import (
	networkingv1 "k8s.io/api/networking/v1"

	"github.com/troupe-vpp/troupe/messages"
)

// ServiceCIDRs are the networks of a ServiceCIDR object, in the form "ip/len".
type ServiceCIDRs struct {
	Name     string
	Networks []string
}

// ServiceCIDR normalises a networking.k8s.io/v1 ServiceCIDR. source names the origin of the object
// in the errors. The result is nil only when the object is nil or has no usable name.
func ServiceCIDR(source string, in *networkingv1.ServiceCIDR) (*ServiceCIDRs, []*messages.ObjectError) {
	if in == nil {
		return nil, nil
	}
	r := &report{source: source, kind: KindServiceCIDR}
	if !r.identify(false, "", in.Name) {
		return nil, r.errors
	}
	return &ServiceCIDRs{in.Name, r.networks(in.Spec.CIDRs, func(i int) string { return at("spec.cidrs", i) })}, r.errors
}
