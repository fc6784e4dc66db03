package normalize_test

import (
	"regexp"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/troupe-vpp/troupe/kube/kubetest"
	"github.com/troupe-vpp/troupe/kube/normalize"
	"github.com/troupe-vpp/troupe/messages"
)

// TestAcceptanceObjects: the objects of the acceptance cases have the form of an API server, so
// nothing may be lost or reported. The test derives the expectation field by field, without the
// tolerance of the package.
func TestAcceptanceObjects(t *testing.T) {
	for _, c := range kubetest.Load(t).Cases {
		t.Run(c.Name, func(t *testing.T) {
			all := []kubetest.Objects{c.Objects}
			for _, step := range c.Steps {
				all = append(all, step.Apply)
			}
			for _, objects := range all {
				for _, s := range objects.Services {
					got, problems := normalize.Service("test", s)
					wantFields(t, problems, "", "")
					wantMessage(t, got, plainService(s))
				}
				for _, s := range objects.EndpointSlices {
					got, problems := normalize.EndpointSlice("test", s)
					wantFields(t, problems, "", "")
					wantMessage(t, got, plainSlice(s))
				}
				for _, n := range objects.Nodes {
					got, problems := normalize.Node("test", n)
					wantFields(t, problems, "", "")
					want := &messages.Node{Name: n.Name, Zone: n.Labels["topology.kubernetes.io/zone"]}
					for _, a := range n.Status.Addresses {
						want.Addresses = append(want.Addresses, a.Address)
					}
					wantMessage(t, got, want)
				}
			}
		})
	}
}

// zeros finds leading zeros of octets.
var zeros = regexp.MustCompile(`(^|\.)0+(\d)`)

// plain returns addresses without leading zeros of octets.
func plain(in []string) []string {
	var out []string
	for _, text := range in {
		out = append(out, plainAddress(text))
	}
	return out
}

func plainAddress(text string) string { return zeros.ReplaceAllString(text, "$1$2") }

var plainProtocols = map[corev1.Protocol]messages.Protocol{"TCP": 6, "UDP": 17, "SCTP": 132}

func plainService(s *corev1.Service) *messages.Service {
	types := map[corev1.ServiceType]messages.ServiceType{"ClusterIP": 0, "NodePort": 1, "LoadBalancer": 2, "ExternalName": 3}
	out := &messages.Service{
		Namespace: s.Namespace, Name: s.Name, Type: types[s.Spec.Type],
		ExternalIps: plain(s.Spec.ExternalIPs), HealthCheckNodePort: uint32(s.Spec.HealthCheckNodePort),
		Headless: s.Spec.ClusterIP == "None",
	}
	if !out.Headless {
		out.ClusterIps = plain(s.Spec.ClusterIPs)
		if len(out.ClusterIps) == 0 && s.Spec.ClusterIP != "" {
			out.ClusterIps = plain([]string{s.Spec.ClusterIP})
		}
	}
	_, out.ForeignProxy = s.Labels["service.kubernetes.io/service-proxy-name"]
	for _, f := range s.Spec.IPFamilies {
		out.IpFamilies = append(out.IpFamilies, map[corev1.IPFamily]messages.IPFamily{"IPv4": 4, "IPv6": 6}[f])
	}
	for _, p := range s.Spec.Ports {
		out.Ports = append(out.Ports, &messages.ServicePort{
			Name: p.Name, Protocol: plainProtocols[p.Protocol], Port: uint32(p.Port), NodePort: uint32(p.NodePort),
		})
	}
	for _, i := range s.Status.LoadBalancer.Ingress {
		if i.IP != "" {
			out.LoadBalancer = append(out.LoadBalancer, &messages.LoadBalancerIngress{Ip: plainAddress(i.IP), Proxy: i.IPMode != nil && *i.IPMode == "Proxy"})
		}
	}
	for _, text := range s.Spec.LoadBalancerSourceRanges {
		prefix, err := normalize.ParsePrefix(text)
		if err != nil {
			continue
		}
		out.SourceRanges = append(out.SourceRanges, prefix.String())
	}
	if s.Spec.InternalTrafficPolicy != nil && *s.Spec.InternalTrafficPolicy == "Local" {
		out.InternalPolicy = 1
	}
	if s.Spec.ExternalTrafficPolicy == "Local" {
		out.ExternalPolicy = 1
	}
	if s.Spec.SessionAffinity == "ClientIP" {
		out.AffinitySeconds = uint32(*s.Spec.SessionAffinityConfig.ClientIP.TimeoutSeconds)
	}
	return out
}

func plainSlice(s *discoveryv1.EndpointSlice) *messages.EndpointSlice {
	out := &messages.EndpointSlice{
		Namespace: s.Namespace, Name: s.Name, Service: s.Labels["kubernetes.io/service-name"],
		Family: map[discoveryv1.AddressType]messages.IPFamily{"IPv4": 4, "IPv6": 6}[s.AddressType],
	}
	_, out.Headless = s.Labels["service.kubernetes.io/headless"]
	if out.Family == 0 {
		return out
	}
	for _, p := range s.Ports {
		if p.Port != nil && *p.Port != 0 {
			out.Ports = append(out.Ports, &messages.EndpointPort{Name: *p.Name, Protocol: plainProtocols[*p.Protocol], Port: uint32(*p.Port)})
		}
	}
	for _, e := range s.Endpoints {
		one := &messages.Endpoint{
			Address: plainAddress(e.Addresses[0]),
			Ready:   e.Conditions.Ready == nil || *e.Conditions.Ready, Serving: e.Conditions.Serving == nil || *e.Conditions.Serving,
			Terminating: e.Conditions.Terminating != nil && *e.Conditions.Terminating,
		}
		if e.NodeName != nil {
			one.Node = *e.NodeName
		}
		if e.Hints != nil {
			for _, z := range e.Hints.ForZones {
				one.ZoneHints = append(one.ZoneHints, z.Name)
			}
			for _, n := range e.Hints.ForNodes {
				one.NodeHints = append(one.NodeHints, n.Name)
			}
		}
		if e.TargetRef != nil {
			one.Pod = e.TargetRef.Namespace + "/" + e.TargetRef.Name
		}
		out.Endpoints = append(out.Endpoints, one)
	}
	return out
}
