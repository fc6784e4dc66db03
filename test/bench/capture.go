package main

import (
	"encoding/binary"
	"net/netip"
	"os"
)

// Flags of TCP.
const (
	syn = 2
	ack = 16
)

// writeCapture writes a capture file of TCP packets, each of another flow, from clients with ports
// from the given one on.
func writeCapture(path string, flags byte, packets, port int, to func(i int) netip.AddrPort) error {
	order := binary.LittleEndian
	file := order.AppendUint32(nil, 0xa1b2c3d4)
	file = order.AppendUint16(order.AppendUint16(file, 2), 4) // version
	for _, field := range []uint32{0, 0, 1 << 16, 101} {      // longest packet; IP
		file = order.AppendUint32(file, field)
	}
	for i := range packets {
		packet := segment(flags, uint16(port+i), to(i))
		for _, field := range []int{0, 0, len(packet), len(packet)} {
			file = order.AppendUint32(file, uint32(field))
		}
		file = append(file, packet...)
	}
	return os.WriteFile(path, file, 0o600)
}

// segment is a TCP packet of a client, without data. VPP does not verify its checksum.
func segment(flags byte, port uint16, to netip.AddrPort) []byte {
	const size, protocol, hops = 20, 6, 64
	order := binary.BigEndian
	var packet []byte
	if to.Addr().Is4() {
		packet = append([]byte{0x45, 0, 0, 2 * size, 0, 0, 0, 0, hops, protocol, 0, 0, 192, 168, 18, 2}, to.Addr().AsSlice()...)
		sum := uint32(0)
		for i := 0; i < size; i += 2 {
			sum += uint32(order.Uint16(packet[i:]))
		}
		order.PutUint16(packet[10:], ^uint16(sum>>16+sum))
	} else {
		client := netip.MustParseAddr("fd18::2").As16()
		packet = append([]byte{0x60, 0, 0, 0, 0, size, protocol, hops}, client[:]...)
		packet = append(packet, to.Addr().AsSlice()...)
	}
	packet = order.AppendUint16(order.AppendUint16(packet, port), to.Port())
	return append(packet, 0, 0, 0, 1, 0, 0, 0, 1, 0x50, flags, 0x20, 0, 0, 0, 0, 0)
}
