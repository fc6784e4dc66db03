package hostroute

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"slices"
	"syscall"
)

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
