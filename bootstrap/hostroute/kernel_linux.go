package hostroute

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"slices"
	"syscall"
)

// Host returns the kernel's table for the family of an address, in the network namespace of the
// process.
func Host(family netip.Addr) Kernel {
	if family.Is4() {
		return host{syscall.AF_INET, syscall.RTNLGRP_IPV4_ROUTE}
	}
	return host{syscall.AF_INET6, syscall.RTNLGRP_IPV6_ROUTE}
}

// host speaks rtnetlink. Each call has a socket of its own.
type host struct {
	family int
	group  int // of changes of routes
}

func (h host) Link(name string) (int, error) {
	link, err := net.InterfaceByName(name)
	if err != nil {
		return 0, fmt.Errorf("interface %s of the host: %w", name, err)
	}
	if link.Flags&net.FlagUp == 0 {
		return 0, fmt.Errorf("interface %s of the host is down", name)
	}
	return link.Index, nil
}

func (host) Has(a netip.Addr) (bool, error) {
	all, err := net.InterfaceAddrs()
	if err != nil {
		return false, fmt.Errorf("read the addresses of the host: %w", err)
	}
	return slices.ContainsFunc(all, func(one net.Addr) bool {
		p, err := netip.ParsePrefix(one.String())
		return err == nil && p.Addr() == a
	}), nil
}

func (h host) Routes() ([]Route, error) {
	answer, err := syscall.NetlinkRIB(syscall.RTM_GETROUTE, h.family)
	if err != nil {
		return nil, fmt.Errorf("read the routes of the host: %w", err)
	}
	all, err := syscall.ParseNetlinkMessage(answer)
	if err != nil {
		return nil, fmt.Errorf("read the routes of the host: %w", err)
	}
	var routes []Route
	for i := range all {
		if r, ok := decode(&all[i]); ok {
			routes = append(routes, r)
		}
	}
	return routes, nil
}

// decode reads a route; ok is false for other messages, other tables and other kinds of routes, and
// r is then the zero value.
func decode(m *syscall.NetlinkMessage) (r Route, ok bool) {
	if (m.Header.Type != syscall.RTM_NEWROUTE && m.Header.Type != syscall.RTM_DELROUTE) || len(m.Data) < syscall.SizeofRtMsg {
		return Route{}, false
	}
	head := syscall.RtMsg{Family: m.Data[0], Dst_len: m.Data[1], Table: m.Data[4], Protocol: m.Data[5], Type: m.Data[7]}
	if head.Table != syscall.RT_TABLE_MAIN && head.Table != Table || head.Type != syscall.RTN_UNICAST {
		return r, false
	}
	attributes, err := syscall.ParseNetlinkRouteAttr(m)
	if err != nil {
		return r, false
	}
	dst := netip.IPv4Unspecified()
	if head.Family == syscall.AF_INET6 {
		dst = netip.IPv6Unspecified()
	}
	r.Protocol = head.Protocol
	if head.Table == Table {
		r.Table = Table
	}
	for _, a := range attributes {
		switch a.Attr.Type {
		case syscall.RTA_DST:
			dst, _ = netip.AddrFromSlice(a.Value)
		case syscall.RTA_GATEWAY:
			r.Gateway, _ = netip.AddrFromSlice(a.Value)
		case syscall.RTA_OIF:
			r.Link = int(binary.NativeEndian.Uint32(a.Value))
		case syscall.RTA_PREFSRC:
			r.Source, _ = netip.AddrFromSlice(a.Value)
		case syscall.RTA_PRIORITY:
			r.Metric = binary.NativeEndian.Uint32(a.Value)
		}
	}
	r.Prefix = netip.PrefixFrom(dst, int(head.Dst_len))
	return r, true
}

func (h host) Add(r Route) error {
	if err := h.send(syscall.RTM_NEWROUTE, syscall.NLM_F_CREATE|syscall.NLM_F_EXCL, encode(h.family, r)); err != nil {
		return fmt.Errorf("add the host route %s via %s: %w", r.Prefix, r.Gateway, err)
	}
	return nil
}

func (h host) Remove(r Route) error {
	if err := h.send(syscall.RTM_DELROUTE, 0, encode(h.family, r)); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("remove the host route %s: %w", r.Prefix, err)
	}
	return nil
}

// send sends one request and waits for its acknowledgement.
func (h host) send(kind, flags uint16, body []byte) error {
	fd, err := syscall.Socket(syscall.AF_NETLINK, syscall.SOCK_RAW|syscall.SOCK_CLOEXEC, syscall.NETLINK_ROUTE)
	if err != nil {
		return os.NewSyscallError("socket", err)
	}
	defer func() { _ = syscall.Close(fd) }()
	kernel := &syscall.SockaddrNetlink{Family: syscall.AF_NETLINK}
	if err := syscall.Sendto(fd, request(kind, flags, body), 0, kernel); err != nil {
		return os.NewSyscallError("sendto", err)
	}
	buffer := make([]byte, 4096)
	n, _, err := syscall.Recvfrom(fd, buffer, 0)
	if err != nil {
		return os.NewSyscallError("recvfrom", err)
	}
	if n < syscall.SizeofNlMsghdr+4 || binary.NativeEndian.Uint16(buffer[4:]) != syscall.NLMSG_ERROR {
		return errors.New("netlink: not an acknowledgement")
	}
	if code := int32(binary.NativeEndian.Uint32(buffer[syscall.SizeofNlMsghdr:])); code != 0 {
		return syscall.Errno(-code)
	}
	return nil
}

// encode makes the body of a request about a route.
func encode(family int, r Route) []byte {
	table := cmp.Or(r.Table, syscall.RT_TABLE_MAIN)
	body := []byte{byte(family), byte(r.Prefix.Bits()), 0, 0, table, r.Protocol, syscall.RT_SCOPE_UNIVERSE, syscall.RTN_UNICAST, 0, 0, 0, 0}
	body = attribute(body, syscall.RTA_DST, r.Prefix.Addr().AsSlice())
	body = attribute(body, syscall.RTA_OIF, binary.NativeEndian.AppendUint32(nil, uint32(r.Link)))
	if r.Gateway.IsValid() {
		body = attribute(body, syscall.RTA_GATEWAY, r.Gateway.AsSlice())
	}
	if r.Source.IsValid() {
		body = attribute(body, syscall.RTA_PREFSRC, r.Source.AsSlice())
	}
	if r.Metric != 0 {
		body = attribute(body, syscall.RTA_PRIORITY, binary.NativeEndian.AppendUint32(nil, r.Metric))
	}
	return body
}

// request puts the header of netlink in front of a request.
func request(kind, flags uint16, body []byte) []byte {
	head := binary.NativeEndian.AppendUint32(nil, uint32(syscall.SizeofNlMsghdr+len(body)))
	head = binary.NativeEndian.AppendUint16(head, kind)
	head = binary.NativeEndian.AppendUint16(head, flags|syscall.NLM_F_REQUEST|syscall.NLM_F_ACK)
	head = binary.NativeEndian.AppendUint32(head, 1) // sequence
	head = binary.NativeEndian.AppendUint32(head, 0) // the kernel gives the socket its address
	return append(head, body...)
}

func (h host) Watch(ctx context.Context, changed func(Route)) error {
	fd, err := syscall.Socket(syscall.AF_NETLINK, syscall.SOCK_RAW|syscall.SOCK_CLOEXEC|syscall.SOCK_NONBLOCK, syscall.NETLINK_ROUTE)
	if err != nil {
		return fmt.Errorf("watch the routes of the host: %w", os.NewSyscallError("socket", err))
	}
	groups := uint32(1<<(syscall.RTNLGRP_LINK-1) | 1<<(h.group-1))
	if err := syscall.Bind(fd, &syscall.SockaddrNetlink{Family: syscall.AF_NETLINK, Groups: groups}); err != nil {
		_ = syscall.Close(fd)
		return fmt.Errorf("watch the routes of the host: %w", os.NewSyscallError("bind", err))
	}
	// the socket does not block, so that Close ends a read
	socket := os.NewFile(uintptr(fd), "netlink")
	stop := context.AfterFunc(ctx, func() { _ = socket.Close() })
	defer func() {
		if stop() {
			_ = socket.Close()
		}
	}()
	changed(Route{}) // changes before the watch began
	buffer := make([]byte, 1<<16)
	for {
		n, err := socket.Read(buffer)
		switch {
		case errors.Is(err, os.ErrClosed):
			return nil
		case errors.Is(err, syscall.ENOBUFS): // changes were lost
			changed(Route{})
			continue
		case err != nil:
			return fmt.Errorf("watch the routes of the host: %w", err)
		}
		all, err := syscall.ParseNetlinkMessage(buffer[:n])
		if err != nil {
			return fmt.Errorf("watch the routes of the host: %w", err)
		}
		for i := range all {
			if r, ok := decode(&all[i]); ok || all[i].Header.Type == syscall.RTM_NEWLINK || all[i].Header.Type == syscall.RTM_DELLINK {
				changed(r)
			}
		}
	}
}

// Messages and attributes of rules and links (linux/fib_rules.h, linux/if_link.h, linux/ip.h).
const (
	rtmNewRule, rtmDelRule, rtmGetRule = 32, 33, 34

	fraDst, fraIifname, fraPriority, fraTable          = 1, 3, 6, 15
	fraProtocol, fraIPProto, fraDportRange             = 21, 22, 24
	frActToTable, sizeofRuleHeader, localTable         = 1, 12, syscall.RT_TABLE_LOCAL
	iflaAfSpec, iflaInetConf, devconfAcceptLocal, word = 26, 1, 23, 4
)

// attribute appends an attribute of netlink, padded to words.
func attribute(to []byte, kind uint16, value []byte) []byte {
	to = binary.NativeEndian.AppendUint16(to, uint16(word+len(value)))
	to = append(binary.NativeEndian.AppendUint16(to, kind), value...)
	return append(to, make([]byte, (word-len(value)%word)%word)...)
}

// rawRule is any rule of the kernel.
type rawRule struct {
	Rule
	table, priority uint32
	own             bool
}

// raw reads all rules, in the order in which the kernel applies them.
func (h host) raw() ([]rawRule, error) {
	answer, err := syscall.NetlinkRIB(rtmGetRule, h.family)
	if err != nil {
		return nil, fmt.Errorf("read the rules of the host: %w", err)
	}
	all, err := syscall.ParseNetlinkMessage(answer)
	if err != nil {
		return nil, fmt.Errorf("read the rules of the host: %w", err)
	}
	var rules []rawRule
	for _, m := range all {
		if m.Header.Type != rtmNewRule || len(m.Data) < sizeofRuleHeader || int(m.Data[0]) != h.family {
			continue
		}
		r := rawRule{table: uint32(m.Data[4])}
		for rest := m.Data[sizeofRuleHeader:]; len(rest) >= word; {
			size, kind := int(binary.NativeEndian.Uint16(rest)), binary.NativeEndian.Uint16(rest[2:])
			if size < word || size > len(rest) {
				break
			}
			switch value := rest[word:size]; kind {
			case fraDst:
				r.To, _ = netip.AddrFromSlice(value)
			case fraPriority:
				r.priority = binary.NativeEndian.Uint32(value)
			case fraTable:
				r.table = binary.NativeEndian.Uint32(value)
			case fraProtocol:
				r.own = value[0] == Protocol
			case fraIPProto:
				r.Protocol = value[0]
			case fraDportRange:
				r.Ports = Ports{binary.NativeEndian.Uint16(value), binary.NativeEndian.Uint16(value[2:])}
			}
			rest = rest[min(len(rest), (size+word-1)/word*word):]
		}
		rules = append(rules, r)
	}
	return rules, nil
}

func (h host) Rules() (own []Rule, err error) {
	all, err := h.raw()
	late := false
	for _, r := range all {
		late = late || r.table == localTable
		if r.own && r.table == Table {
			r.Late = late
			own = append(own, r.Rule)
		}
	}
	return own, err
}

// AddRule satisfies Kernel. The lookup of the kernel's own addresses has the highest priority, so
// it is added again behind the new rule before the first one goes: there is always one.
func (h host) AddRule(r Rule) error {
	if err := h.rule(rtmNewRule, syscall.NLM_F_CREATE, r); err != nil {
		return fmt.Errorf("add the rule for node ports of %s: %w", r.To, err)
	}
	all, err := h.raw()
	if err != nil {
		return err
	}
	for _, before := range all {
		if before.own && before.Rule == r {
			break
		}
		if before.table == localTable && before.priority == 0 {
			local := attribute([]byte{byte(h.family), 0, 0, 0, localTable, 0, 0, frActToTable, 0, 0, 0, 0}, fraPriority, make([]byte, word))
			err := h.send(rtmNewRule, syscall.NLM_F_CREATE, local)
			if err == nil {
				err = h.send(rtmDelRule, 0, local)
			}
			if err != nil {
				return fmt.Errorf("put the lookup of the host's addresses behind the rule for node ports of %s: %w", r.To, err)
			}
			break
		}
	}
	return nil
}

func (h host) RemoveRule(r Rule) error {
	if err := h.rule(rtmDelRule, 0, r); err != nil && !errors.Is(err, syscall.ENOENT) {
		return fmt.Errorf("remove the rule for node ports of %s: %w", r.To, err)
	}
	return nil
}

// rule sends a rule for packets of the host's own processes.
func (h host) rule(kind, flags uint16, r Rule) error {
	body := []byte{byte(h.family), byte(r.To.BitLen()), 0, 0, Table, 0, 0, frActToTable, 0, 0, 0, 0}
	body = attribute(body, fraDst, r.To.AsSlice())
	body = attribute(body, fraIifname, []byte("lo\x00"))
	body = attribute(body, fraPriority, make([]byte, word))
	body = attribute(body, fraTable, binary.NativeEndian.AppendUint32(nil, Table))
	body = attribute(body, fraProtocol, []byte{Protocol})
	body = attribute(body, fraIPProto, []byte{r.Protocol})
	body = attribute(body, fraDportRange, binary.NativeEndian.AppendUint16(binary.NativeEndian.AppendUint16(nil, r.Ports.First), r.Ports.Last))
	return h.send(kind, flags, body)
}

// AcceptLocal satisfies Kernel. /proc is read only in a container, so netlink writes.
func (h host) AcceptLocal(name string, on bool) error {
	if h.family != syscall.AF_INET {
		return nil // IPv6 has no such setting: the kernel accepts these packets
	}
	value, text := uint32(0), []byte("0")
	if on {
		value, text = 1, []byte("1")
	}
	now, err := os.ReadFile("/proc/sys/net/ipv4/conf/" + name + "/accept_local")
	if err == nil && slices.Equal(bytes.TrimSpace(now), text) {
		return nil // a write would be reported as a change of the link
	}
	if errors.Is(err, fs.ErrNotExist) && !on {
		return nil // the interface has gone
	}
	link, err := h.Link(name)
	if err != nil {
		return err
	}
	setting := attribute(nil, devconfAcceptLocal, binary.NativeEndian.AppendUint32(nil, value))
	body := binary.NativeEndian.AppendUint32(make([]byte, word, syscall.SizeofIfInfomsg), uint32(link))
	body = append(body, make([]byte, syscall.SizeofIfInfomsg-len(body))...)
	body = attribute(body, iflaAfSpec, attribute(nil, syscall.AF_INET, attribute(nil, iflaInetConf, setting)))
	if err := h.send(syscall.RTM_SETLINK, 0, body); err != nil {
		return fmt.Errorf("set accept_local of %s: %w", name, err)
	}
	return nil
}
