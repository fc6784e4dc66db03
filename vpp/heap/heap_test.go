package heap

import (
	"errors"
	"sync/atomic"
	"testing"
)

func TestParse(t *testing.T) {
	const text = `Thread 0 vpp_main
  base 0x7f66b5a4d000, size 1g, locked, unmap-on-destroy, name 'main heap'
    page stats: page-size 4K, total 262144, mapped 44163, not-mapped 217981
      numa 0: 44163 pages, 172.51m bytes
    total: 1023.99M, used: 66.94M, free: 957.05M, trimmable: 956.98M
`
	if got, err := parse(text); err != nil || got.Total>>20 != 1023 || got.Free>>20 != 957 {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err := parse("total: 2.00G, used: 512, free: 900.50K, trimmable: 0"); err != nil || got != (State{Total: 2 << 30, Free: 900<<10 + 512}) {
		t.Errorf("%+v, %v", got, err)
	}
	for _, odd := range []string{"", "unknown input", "total: 1M, used: 2"} {
		if got, err := parse(odd); !errors.Is(err, ErrNotUnderstood) {
			t.Errorf("%q: %+v, %v", odd, got, err)
		}
	}
}

// TestReserveOfStatistics: rows that were granted since the last reading before an update of VPP's
// statistics may not be in it, and other renderers' rows count as well.
func TestReserveOfStatistics(t *testing.T) {
	const mib = 1 << 20
	var granted atomic.Int64
	r, other := Reserve{Percent: 10, Granted: &granted}, Reserve{Percent: 10, Granted: &granted}
	free := func(want int) {
		t.Helper()
		if got := r.State().Free; got != want*mib {
			t.Errorf("%d MiB are free, want %d", got/mib, want)
		}
	}
	other.Grow(100 * mib) // to the VPP before
	r.Took(State{Total: 1000 * mib, Free: 900 * mib, Beat: 1})
	free(900)
	r.Grow(50 * mib)
	other.Grow(50 * mib)
	if free(800); !r.Due() {
		t.Error("100 MiB need a new reading")
	}
	r.Took(State{Total: 1000 * mib, Free: 900 * mib, Beat: 1}) // the same update
	free(800)
	other.Grow(50 * mib)
	r.Took(State{Total: 1000 * mib, Free: 780 * mib, Beat: 2})
	if free(730); r.Due() {
		t.Error("read twice without any row")
	}
	if err := r.Admit(640 * mib); !errors.Is(err, ErrLow) {
		t.Errorf("90 MiB would be left: %v", err)
	}
	r.Took(State{Total: 1000 * mib, Free: 750 * mib, Beat: 3})
	if err := r.Admit(640 * mib); err != nil {
		t.Error(err)
	}
}

func TestReserve(t *testing.T) {
	r := Reserve{Percent: 15}
	if !r.Due() || r.Admit(1<<40) != nil {
		t.Error("a heap of which nothing is known must be read, and refuses nothing")
	}
	r.Took(State{Total: 1000 << 20, Free: 160 << 20})
	if r.Due() || r.Admit(9<<20) != nil || !r.Due() {
		t.Error("9 of 10 MiB may be added, and need a new reading")
	}
	if err := r.Admit(2 << 20); !errors.Is(err, ErrLow) {
		t.Errorf("11 of 10 MiB: %v", err)
	}
	r.Grow(1 << 20) // a row that is there may grow
	if got := r.State().Free; got != 150<<20 {
		t.Errorf("%d bytes are free", got)
	}
	for free, want := range map[int]Level{150: Enough, 149: Low, 75: Low, 74: Critical, 0: Critical} {
		if r.Took(State{Total: 1000 << 20, Free: free << 20}); r.Level() != want || r.Due() {
			t.Errorf("%d MiB: %d, want %d", free, r.Level(), want)
		}
	}
	if r.Again(); !r.Due() {
		t.Error("the heap is not read again")
	}
	r.Took(State{Total: 1000 << 20, Free: 500 << 20})
	if r.Due() || r.Admit(100<<20) != nil || r.Lost() || r.Percent != 15 {
		t.Error("a VPP that ends with 400 of 1000 MiB free has not ended of its memory")
	}
	for _, want := range []int{25, 35, 45, 50, 50} {
		r.Took(State{Total: 1000 << 20, Free: 200 << 20})
		if r.Lost(); r.Percent != want || !r.Due() {
			t.Errorf("reserve %d, want %d", r.Percent, want)
		}
	}
	var off Reserve
	if off.Level() != Enough {
		t.Error("the zero value reserves something")
	}
	off.Took(State{Total: 100, Free: 1})
	if off.Due() || off.Admit(1<<30) != nil || off.Lost() {
		t.Error("the zero value reserves nothing")
	}
}
