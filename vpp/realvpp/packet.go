package realvpp

import (
	"encoding/binary"
	"fmt"
	"net/netip"

	"github.com/troupe-vpp/troupe/vpp/rule"
)

// Packet is an IP packet of TCP or UDP.
type Packet struct {
	// Port is the index of the interface through which it enters VPP, or leaves it.
	Port uint32
	// ID is its payload, by which it is known again.
	ID       uint64
	Src, Dst netip.AddrPort
	// Proto is the IP protocol; all but ICMP are known again. Flags are those of TCP as on the
	// wire.
	Proto, Flags uint8
	// Fragment is 0 for a whole packet; of a UDP datagram of IPv4, 1 for the first fragment and
	// 2 for the second, which is its payload only.
	Fragment uint8
}

// Sizes of capture files, in bytes.
const (
	captureHeader = 24
	recordHeader  = 16
)

// encodeCapture makes a capture file.
func encodeCapture(packets []Packet) []byte {
	b := binary.NativeEndian.AppendUint32(nil, 0xa1b2c3d4)
	b = append(b, make([]byte, captureHeader-len(b))...)
	for _, p := range packets {
		data := p.encode()
		b = append(b, make([]byte, 8)...) // time
		b = binary.NativeEndian.AppendUint32(b, uint32(len(data)))
		b = binary.NativeEndian.AppendUint32(b, uint32(len(data)))
		b = append(b, data...)
	}
	return b
}

// decodeCapture reads the records of a capture file that are complete, and returns the number of
// their bytes.
func decodeCapture(b []byte) (packets []Packet, read int, err error) {
	for len(b) >= recordHeader {
		n := recordHeader + int(binary.NativeEndian.Uint32(b[8:]))
		if n > len(b) {
			break
		}
		p, err := decodePacket(b[recordHeader:n])
		if err != nil {
			return nil, 0, err
		}
		packets, read, b = append(packets, p), read+n, b[n:]
	}
	return packets, read, nil
}

// Sizes of headers, in bytes.
const (
	ip4Header = 20
	ip6Header = 40
	tcpHeader = 20
	udpHeader = 8
)

// encode makes the bytes of a packet. The checksums of UDP and TCP are not checked.
func (p Packet) encode() []byte {
	transport := make([]byte, udpHeader+8)
	if p.Proto == rule.TCP {
		transport = make([]byte, tcpHeader+8)
		transport[12], transport[13] = tcpHeader/4<<4, p.Flags
	} else {
		binary.BigEndian.PutUint16(transport[4:], udpHeader+8)
	}
	binary.BigEndian.PutUint16(transport, p.Src.Port())
	binary.BigEndian.PutUint16(transport[2:], p.Dst.Port())
	binary.BigEndian.PutUint64(transport[len(transport)-8:], p.ID)
	if p.Fragment == 2 {
		transport = transport[udpHeader:]
	}
	return append(p.header(len(transport)), transport...)
}

// header makes the IP header in front of a number of bytes.
func (p Packet) header(follow int) []byte {
	src, dst := p.Src.Addr().AsSlice(), p.Dst.Addr().AsSlice()
	if p.Src.Addr().Is4() {
		b := make([]byte, ip4Header)
		b[0], b[8], b[9] = 0x45, 64, p.Proto
		binary.BigEndian.PutUint16(b[2:], uint16(ip4Header+follow))
		copy(b[12:], src)
		copy(b[16:], dst)
		switch p.Fragment {
		case 1:
			b[5], b[6] = 1, 0x20 // identification; more fragments
		case 2:
			b[5], b[7] = 1, (udpHeader+8)/8 // where it begins, in units of 8 bytes
		}
		binary.BigEndian.PutUint16(b[10:], checksum(b))
		return b
	}
	b := make([]byte, ip6Header)
	b[0], b[6], b[7] = 0x60, p.Proto, 64
	binary.BigEndian.PutUint16(b[4:], uint16(follow))
	copy(b[8:], src)
	copy(b[24:], dst)
	return b
}

// decodePacket is the reverse of encode. Packets that VPP sends by itself have another protocol and
// no ID.
func decodePacket(b []byte) (Packet, error) {
	var p Packet
	var src, dst, rest []byte
	switch {
	case len(b) > ip4Header && b[0] == 0x45 && checksum(b[:ip4Header]) == 0:
		p.Proto, src, dst, rest = b[9], b[12:16], b[16:20], b[ip4Header:]
	case len(b) > ip6Header && b[0]>>4 == 6:
		p.Proto, src, dst, rest = b[6], b[8:24], b[24:40], b[ip6Header:]
	}
	if len(rest) < udpHeader {
		return Packet{}, fmt.Errorf("not a packet of this test: % x", b)
	}
	at := func(addr []byte, port int) netip.AddrPort {
		a, _ := netip.AddrFromSlice(addr)
		return netip.AddrPortFrom(a, binary.BigEndian.Uint16(rest[port:]))
	}
	p.Src, p.Dst, p.ID = at(src, 0), at(dst, 2), binary.BigEndian.Uint64(rest[len(rest)-8:])
	if p.Proto == rule.TCP && len(rest) > 13 {
		p.Flags = rest[13]
	}
	return p, nil
}

// checksum is the checksum of RFC 1071; over a header with its checksum it is 0.
func checksum(b []byte) uint16 {
	var sum uint32
	for ; len(b) >= 2; b = b[2:] {
		sum += uint32(binary.BigEndian.Uint16(b))
	}
	for sum > 0xffff {
		sum = sum>>16 + sum&0xffff
	}
	return ^uint16(sum)
}
