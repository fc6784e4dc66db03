package realvpp

import (
	"encoding/binary"
	"fmt"
	"net/netip"

	"github.com/troupe-vpp/troupe/vpp/frontend"
)

// Packet is an IPv4 packet of TCP or UDP.
type Packet struct {
	// Port is the index of the interface through which it enters VPP, or leaves it.
	Port uint32
	// ID is its payload, by which it is known again.
	ID       uint64
	Src, Dst netip.AddrPort
	// Proto is frontend.TCP or frontend.UDP, Flags those of TCP as on the wire.
	Proto, Flags uint8
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

// decodeCapture reads the records of a capture file that are complete, and returns the number of their bytes.
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
	ipHeader  = 20
	tcpHeader = 20
	udpHeader = 8
)

// encode makes the bytes of a packet. The checksum of UDP may be 0; that of TCP is not checked.
func (p Packet) encode() []byte {
	size := ipHeader + udpHeader + 8
	if p.Proto == frontend.TCP {
		size = ipHeader + tcpHeader + 8
	}
	b := make([]byte, size)
	b[0], b[8], b[9] = 0x45, 64, p.Proto
	binary.BigEndian.PutUint16(b[2:], uint16(size))
	src, dst := p.Src.Addr().As4(), p.Dst.Addr().As4()
	copy(b[12:], src[:])
	copy(b[16:], dst[:])
	binary.BigEndian.PutUint16(b[10:], checksum(b[:ipHeader]))
	binary.BigEndian.PutUint16(b[ipHeader:], p.Src.Port())
	binary.BigEndian.PutUint16(b[ipHeader+2:], p.Dst.Port())
	if p.Proto == frontend.TCP {
		b[ipHeader+12], b[ipHeader+13] = tcpHeader/4<<4, p.Flags
	} else {
		binary.BigEndian.PutUint16(b[ipHeader+4:], udpHeader+8)
	}
	binary.BigEndian.PutUint64(b[size-8:], p.ID)
	return b
}

// decodePacket is the reverse of encode.
func decodePacket(b []byte) (Packet, error) {
	if len(b) < ipHeader+udpHeader+8 || b[0] != 0x45 || checksum(b[:ipHeader]) != 0 {
		return Packet{}, fmt.Errorf("not a packet of this test: % x", b)
	}
	addr := func(at, port int) netip.AddrPort {
		return netip.AddrPortFrom(netip.AddrFrom4([4]byte(b[at:])), binary.BigEndian.Uint16(b[ipHeader+port:]))
	}
	p := Packet{Src: addr(12, 0), Dst: addr(16, 2), Proto: b[9], ID: binary.BigEndian.Uint64(b[len(b)-8:])}
	if p.Proto == frontend.TCP {
		p.Flags = b[ipHeader+13]
	}
	return p, nil
}

// checksum is that of RFC 1071; over a header with its checksum it is 0.
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
