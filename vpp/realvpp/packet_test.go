package realvpp

import (
	"bytes"
	"net/netip"
	"slices"
	"testing"

	"github.com/troupe-vpp/troupe/vpp/rule"
)

func TestCaptureFiles(t *testing.T) {
	sent := []Packet{
		{ID: 1, Src: netip.MustParseAddrPort("198.51.100.1:40000"), Dst: netip.MustParseAddrPort("10.96.0.1:80"), Proto: rule.TCP, Flags: 2},
		{ID: 1 << 40, Src: netip.MustParseAddrPort("10.1.0.1:53"), Dst: netip.MustParseAddrPort("198.51.100.1:40000"), Proto: rule.UDP},
		{ID: 7, Src: netip.MustParseAddrPort("[fd00::1]:53"), Dst: netip.MustParseAddrPort("[fd00:96::1]:40000"), Proto: rule.UDP},
		{ID: 1 << 50, Src: netip.MustParseAddrPort("[fd00::1]:53"), Dst: netip.MustParseAddrPort("[fd00:96::1]:40000"), Proto: rule.TCP, Flags: 0x12},
	}
	file := encodeCapture(sent)
	for cut := captureHeader; cut <= len(file); cut++ {
		got, read, err := decodeCapture(file[captureHeader:cut])
		if err != nil || read > cut-captureHeader {
			t.Fatalf("%d bytes: %d read, %v", cut, read, err)
		}
		if !slices.Equal(got, sent[:len(got)]) {
			t.Errorf("%d bytes: %v, want %v", cut, got, sent[:len(got)])
		}
	}
	if !bytes.Equal(file, encodeCapture(sent)) {
		t.Error("a capture is written in two ways")
	}
}
