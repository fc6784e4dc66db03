package owned

import (
	"fmt"
	"net/netip"
	"strings"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/feature"
	"go.fd.io/govpp/binapi/nat44_ed"
	"go.fd.io/govpp/binapi/nat_types"
	"go.fd.io/govpp/binapi/vrrp"
)

// Kind is the kind of an object.
type Kind string

// The kinds of objects without a mark of their owner.
const (
	// Role is a NAT44 role of Interface: Value is "inside" or "outside".
	Role Kind = "nat44-role"
	// Output says that Interface is an output interface of NAT44.
	Output Kind = "nat44-output"
	// TwiceNAT and Pool are addresses of NAT44's pools, in Value.
	TwiceNAT Kind = "nat44-twice-nat-address"
	Pool     Kind = "nat44-address"
	// Node is a node of CNAT on Interface, with its name in Value.
	Node Kind = "cnat-node"
	// Router is a virtual router on Interface, with "ID/FAMILY" in Value.
	Router Kind = "virtual-router"
)

// Object is one object.
type Object struct {
	Kind Kind `json:"kind"`
	// Interface is a sw_if_index; 0 for kinds without an interface.
	Interface uint32 `json:"interface,omitempty"`
	Value     string `json:"value,omitempty"`
}

// RoleOf returns the object of one role.
func RoleOf(index uint32, inside bool) Object {
	if inside {
		return Object{Role, index, "inside"}
	}
	return Object{Role, index, "outside"}
}

// RouterOf returns the object of a virtual router.
func RouterOf(index uint32, id uint8, ipv6 bool) Object {
	family := "IPv4"
	if ipv6 {
		family = "IPv6"
	}
	return Object{Router, index, fmt.Sprintf("%d/%s", id, family)}
}

// onInterface reports whether the object belongs to an interface.
func (o Object) onInterface() bool {
	return o.Kind == Role || o.Kind == Output || o.Kind == Node || o.Kind == Router
}

// String describes the object in words.
func (o Object) String() string {
	switch o.Kind {
	case Role:
		return fmt.Sprintf("NAT44 role %s of interface %d", o.Value, o.Interface)
	case Output:
		return fmt.Sprintf("NAT44 output interface %d", o.Interface)
	case TwiceNAT:
		return "NAT44 twice-NAT address " + o.Value
	case Pool:
		return "NAT44 address " + o.Value
	case Node:
		return strings.TrimSpace(fmt.Sprintf("CNAT on interface %d %s", o.Interface, o.Value))
	case Router:
		return fmt.Sprintf("virtual router %s on interface %d", o.Value, o.Interface)
	default:
		return string(o.Kind) + " " + o.Value
	}
}

// Objects returns the objects that a request adds or deletes; none = it is about no such object.
func Objects(req api.Message) (objects []Object, add bool) {
	switch m := req.(type) {
	case *nat44_ed.Nat44InterfaceAddDelFeature:
		for _, inside := range []bool{true, false} {
			flag := nat_types.NAT_IS_OUTSIDE
			if inside {
				flag = nat_types.NAT_IS_INSIDE
			}
			if m.Flags&flag != 0 {
				objects = append(objects, RoleOf(uint32(m.SwIfIndex), inside))
			}
		}
		return objects, m.IsAdd
	case *nat44_ed.Nat44EdAddDelOutputInterface:
		return []Object{{Kind: Output, Interface: uint32(m.SwIfIndex)}}, m.IsAdd
	case *nat44_ed.Nat44AddDelAddressRange: // the agent sends one address at a time
		return []Object{addressOf(netip.AddrFrom4(m.FirstIPAddress), m.Flags)}, m.IsAdd
	case *vrrp.VrrpVrAddDel:
		return []Object{RouterOf(uint32(m.SwIfIndex), m.VrID, m.Flags&vrrp.VRRP_API_VR_IPV6 != 0)}, m.IsAdd != 0
	case *feature.FeatureEnableDisable:
		if strings.HasPrefix(m.FeatureName, "cnat-") {
			return []Object{{Node, uint32(m.SwIfIndex), m.FeatureName}}, m.Enable
		}
	}
	return nil, false
}

// addressOf returns the object of an address of NAT44.
func addressOf(a netip.Addr, flags nat_types.NatConfigFlags) Object {
	if flags&nat_types.NAT_IS_TWICE_NAT != 0 {
		return Object{Kind: TwiceNAT, Value: a.String()}
	}
	return Object{Kind: Pool, Value: a.String()}
}

// shown returns the objects that a detail of a dump shows.
func shown(detail api.Message) []Object {
	switch m := detail.(type) {
	case *nat44_ed.Nat44InterfaceDetails:
		objects, _ := Objects(&nat44_ed.Nat44InterfaceAddDelFeature{Flags: m.Flags, SwIfIndex: m.SwIfIndex})
		return objects
	case *nat44_ed.Nat44EdOutputInterfaceDetails:
		return []Object{{Kind: Output, Interface: uint32(m.SwIfIndex)}}
	case *nat44_ed.Nat44AddressDetails:
		return []Object{addressOf(netip.AddrFrom4(m.IPAddress), m.Flags)}
	case *vrrp.VrrpVrDetails:
		return []Object{RouterOf(uint32(m.Config.SwIfIndex), m.Config.VrID, m.Config.Flags&vrrp.VRRP_API_VR_IPV6 != 0)}
	}
	return nil
}

// shows returns the kinds of which a dump shows all objects.
func shows(dump api.Message) []Kind {
	switch dump.(type) {
	case *nat44_ed.Nat44InterfaceDump:
		return []Kind{Role}
	case *nat44_ed.Nat44EdOutputInterfaceGet:
		return []Kind{Output}
	case *nat44_ed.Nat44AddressDump:
		return []Kind{TwiceNAT, Pool}
	case *vrrp.VrrpVrDump:
		return []Kind{Router}
	}
	return nil
}
