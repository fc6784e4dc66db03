package render

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Labels and annotations of the flomesh connector, which other programs read.
const (
	flomeshSourced   = "cloud-sourced-service"
	flomeshService   = "cloud-service"
	flomeshSync      = "flomesh.io/mesh-service-sync"
	flomeshInherited = "flomesh.io/cloud-service-inherited-from"
	flomeshAddress   = "flomesh.io/cloud-endpoint-addr-" // and the IPv4 address as a decimal number
)

// mostFlomesh is the largest number of annotated addresses, because all annotations of an object
// must stay below 256 KiB.
const mostFlomesh = 2000

// flomesh adds the labels and annotations of the flomesh connector to a Service.
func flomesh(s *corev1.Service, name string, groups []group) {
	s.Labels[flomeshSourced] = "true"
	s.Labels[flomeshService] = s.Name
	s.Annotations[flomeshSync] = "false"
	s.Annotations[flomeshInherited] = strings.ToLower(name)
	ports := map[string][]uint16{}
	for _, g := range groups {
		for _, e := range g.endpoints {
			if !e.address.Is4() {
				continue
			}
			key := fmt.Sprintf("%s%d", flomeshAddress, binary.BigEndian.Uint32(e.address.AsSlice()))
			if ports[key] == nil && len(ports) == mostFlomesh {
				continue
			}
			for _, p := range g.ports {
				ports[key] = append(ports[key], p.number)
			}
		}
	}
	for key, numbers := range ports {
		slices.Sort(numbers)
		s.Annotations[key] = fmt.Sprint(slices.Compact(numbers))
	}
}
