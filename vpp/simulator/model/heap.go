package model

import (
	"fmt"
	"net/netip"

	"github.com/troupe-vpp/troupe/vpp/heap"
	"github.com/troupe-vpp/troupe/vpp/simulator/cnat"
)

// Sizes of the main heap, in bytes: the whole as documented for VPP, and what VPP needs without
// rows.
const (
	heapSize = 1 << 30
	heapBase = 66 << 20
)

// mainHeap is the memory of VPP, which dies when it is used up.
type mainHeap struct {
	size  int
	used  int // when the rows were last walked over
	grown int // at most, since then
}

// Grow notes that VPP needs bytes for a row. VPP dies when there are none left.
func (m *Model) Grow(bytes int) {
	m.heap.grown += bytes
	if m.heap.used+m.heap.grown <= m.heap.size {
		return
	}
	if m.heap.used, m.heap.grown = m.rowBytes(), 0; m.heap.used > m.heap.size {
		m.Die("main heap exhausted")
	}
}

// rowBytes is what VPP needs now.
func (m *Model) rowBytes() int {
	bytes := heapBase
	for _, mp := range m.NAT.Mappings.All {
		// Cost counts four entries for a backend
		bytes += heap.NAT44().Of((mp.Locals.Len()+3)/4, false)
	}
	addresses := map[netip.Addr]bool{}
	for _, t := range m.CNAT.Translations.All {
		bytes += heap.CNAT().Of(len(t.Paths), t.LBType != 0)
		addresses[t.VIP.Addr] = true
		for _, p := range t.Paths {
			addresses[p.Dst.Addr] = true
		}
	}
	return bytes + len(addresses)*heap.CNAT().Address
}

// TranslationBytes is what VPP needs for a translation at most.
func TranslationBytes(t *cnat.Translation) int {
	return heap.CNAT().Of(len(t.Paths), t.LBType != 0) + (1+len(t.Paths))*heap.CNAT().Address
}

// HeapUsage is the size of the main heap, and how much of it is in use, in bytes.
func (m *Model) HeapUsage() (total, used int) {
	m.heap.used, m.heap.grown = m.rowBytes(), 0
	return m.heap.size, min(m.heap.used, m.heap.size)
}

// DescribeHeap is the output of "show memory main-heap".
func (m *Model) DescribeHeap() string {
	total, used := m.HeapUsage()
	mib := func(n int) string { return fmt.Sprintf("%.2fM", float64(n)/(1<<20)) }
	return fmt.Sprintf("Thread 0 vpp_main\n    total: %s, used: %s, free: %s, trimmable: 0\n",
		mib(total), mib(used), mib(total-used))
}
