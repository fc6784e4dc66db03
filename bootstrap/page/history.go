package page

import (
	"fmt"
	"math/bits"
	"strings"
	"sync"
	"time"
)

const (
	// minutes is the length of the history.
	minutes = 60
	// classes is the number of classes of latency: below 1 ms, 2 ms, 4 ms and so on to 32 s,
	// and above.
	classes = 17
)

// History has the number of passes that wrote to VPP in each minute of the last hour, and the
// latency of the changes that Kubernetes stamps. The zero value is ready. It is safe for concurrent
// use and takes 8 KB.
type History struct {
	mu     sync.Mutex
	latest int64 // minute of the last change, since 1970
	slots  [minutes]slot
}

// slot is one minute.
type slot struct {
	passes  uint64
	latency [classes]uint64
}

// Synced records that a renderer has written to VPP.
func (h *History) Synced(now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.advance(now)
	h.slots[h.latest%minutes].passes++
}

// Programmed records the latency of a change that has reached VPP.
func (h *History) Programmed(now time.Time, latency time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.advance(now)
	class := min(bits.Len64(uint64(max(latency, 0).Milliseconds())), classes-1)
	h.slots[h.latest%minutes].latency[class]++
}

// advance clears the minutes that have passed.
func (h *History) advance(now time.Time) {
	minute := now.Unix() / 60
	for passed := max(h.latest+1, minute-minutes+1); passed <= minute; passed++ {
		h.slots[passed%minutes] = slot{}
	}
	h.latest = max(h.latest, minute)
}

// curve is one plot of the last hour.
type curve struct {
	Name string
	// Points is a polyline in a field of 118 by 40.
	Points string
	// Now is the sum of the hour, or the value of the latest minute with changes; Most is the
	// largest value of a minute.
	Now, Most string
}

// curves are the plots of the hour before now.
func (h *History) curves(now time.Time) []curve {
	h.mu.Lock()
	h.advance(now)
	slots, latest := h.slots, h.latest
	h.mu.Unlock()
	var passes, middle, worst [minutes]uint64
	for i := range minutes {
		s := &slots[(latest+1+int64(i))%minutes]
		var changes uint64
		for _, n := range s.latency {
			changes += n
		}
		passes[i], middle[i], worst[i] = s.passes, below(s.latency, changes, 50), below(s.latency, changes, 99)
	}
	ms := func(n uint64) string {
		if n == 0 {
			return "-"
		}
		return "< " + (time.Duration(n) * time.Millisecond).String()
	}
	count := plot("writes to VPP in the hour", &passes, func(n uint64) string { return fmt.Sprintf("%d in a minute", n) })
	var sum uint64
	for _, n := range passes {
		sum += n
	}
	count.Now = fmt.Sprint(sum)
	return []curve{count, plot("latency of changes, median", &middle, ms), plot("latency of changes, 99 of 100", &worst, ms)}
}

// below is the bound of the latency of this percentage of the changes, in ms; 0 = there were none.
func below(slot [classes]uint64, all, percent uint64) uint64 {
	var seen uint64
	for class, n := range slot {
		if seen += n; n > 0 && seen*100 >= all*percent {
			return 1 << class
		}
	}
	return 0
}

// plot draws values as a polyline, the latest at the right.
func plot(name string, values *[minutes]uint64, text func(uint64) string) curve {
	var most, last uint64
	for _, v := range values {
		most = max(most, v)
		if v > 0 {
			last = v
		}
	}
	var points strings.Builder
	for i, v := range values {
		fmt.Fprintf(&points, "%d,%d ", 2*i, 38-36*v/max(most, 1))
	}
	return curve{Name: name, Points: strings.TrimSpace(points.String()), Now: text(last), Most: text(most)}
}
