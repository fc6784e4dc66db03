package process

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.fd.io/govpp/binapi/memclnt"
	"go.fd.io/govpp/binapi/vlib"

	"github.com/troupe-vpp/troupe/vpp/realvpp"
)

// hold is the longest time in a second for which a node of VPP's main thread kept that thread.
type hold struct {
	took time.Duration
	node string
	// off is how long the kernel gave the main thread no core in that second, which counts too
	off time.Duration
}

// collector is the node that reads the heap for VPP's own statistics, every 10 s.
const collector = "statseg-collector-process"

// thread watches VPP's main thread.
type thread struct {
	holds []hold
	own   hold            // the longest of VPP's collector, which no client causes
	pings []time.Duration // round trips of a client that only pings, one each 10 ms
}

// watchThread asks VPP every second for its own maximum. For a node, "show runtime max" has the
// most clocks between two readings of the clock in the main loop; a process counts from when it is
// resumed until it suspends, so all messages that the API process takes in one go are one hold. The
// counter has 32 bits: above about 1.5 s only the pings are right.
func watchThread(ctx context.Context, t testing.TB, socket string) *thread {
	w := &thread{}
	raw := realvpp.NewRaw(t, socket)
	cli := func(command string) string {
		var shown vlib.CliInbandReply
		raw.Ask(t, &vlib.CliInband{Cmd: command}, &shown)
		return shown.Reply
	}
	var pong memclnt.ControlPingReply
	raw.Ask(t, &memclnt.ControlPing{}, &pong)
	var hertz float64
	_, shown, _ := strings.Cut(cli("show cpu"), "Base frequency:")
	if _, err := fmt.Sscan(shown, &hertz); err != nil {
		t.Errorf("no frequency in %q: %v", shown, err)
		return w
	}
	hertz *= 1e9
	// The main thread of VPP has a core of its own on a node; here it is the first to get one.
	if err := syscall.Setpriority(syscall.PRIO_PROCESS, int(pong.VpePID), -20); err != nil {
		t.Logf("VPP shares its core with all others: %v", err)
	}
	ping := time.NewTicker(10 * time.Millisecond)
	defer ping.Stop()
	cli("clear runtime")
	cleared, off := time.Now(), waited(pong.VpePID)
	for ctx.Err() == nil {
		<-ping.C
		began := time.Now()
		raw.Ask(t, &memclnt.ControlPing{}, &pong)
		w.pings = append(w.pings, time.Since(began))
		if time.Since(cleared) < time.Second {
			continue
		}
		h, own := longest(cli("show runtime max"), hertz)
		cli("clear runtime")
		now := waited(pong.VpePID)
		h.off, off, cleared = now-off, now, time.Now()
		w.holds = append(w.holds, h)
		if own.off = h.off; own.took > w.own.took {
			w.own = own
		}
	}
	return w
}

// longest is the node with the most clocks in the output of "show runtime max", of the main thread;
// own is VPP's collector.
func longest(shown string, hertz float64) (h, own hold) {
	shown, _, _ = strings.Cut(shown, "---------------") // workers follow
	for line := range strings.Lines(shown) {
		var name string
		var clocks float64
		if n, _ := fmt.Sscan(line, &name, &clocks); n == 2 {
			took := time.Duration(clocks / hertz * 1e9)
			if name == collector {
				own = hold{took: took, node: name}
			} else if took > h.took {
				h.took, h.node = took, name
			}
		}
	}
	return h, own
}

// waited is how long the first thread of a process could run and had no core, since its start.
func waited(pid uint32) (d time.Duration) {
	stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/schedstat", pid))
	var ran time.Duration
	_, _ = fmt.Sscan(string(stat), &ran, &d)
	return d
}

func (w *thread) String() string {
	if len(w.holds) == 0 || len(w.pings) == 0 {
		return "the main thread was not watched"
	}
	slices.SortFunc(w.holds, func(a, b hold) int { return cmp.Compare(a.took, b.took) })
	slices.Sort(w.pings)
	var text strings.Builder
	most := func(share int) hold { return w.holds[(len(w.holds)-1)*share/1000] }
	fmt.Fprintf(&text, "longest hold of the main thread in each of %d seconds: p50 %s, p90 %s, p99 %s; by node at most", len(w.holds),
		round(most(500).took), round(most(900).took), round(most(990).took))
	shown := map[string]bool{}
	for _, h := range slices.Backward(w.holds) {
		if !shown[h.node] && len(shown) < 5 {
			shown[h.node] = true
			fmt.Fprintf(&text, " %s: %s (no core for %s);", h.node, round(h.took), round(h.off))
		}
	}
	fmt.Fprintf(&text, " %s by itself: %s (no core for %s);", w.own.node, round(w.own.took), round(w.own.off))
	fmt.Fprintf(&text, " %d pings of another client: p50 %s, p90 %s, p99.9 %s, at most %s", len(w.pings), round(w.pings[len(w.pings)/2]),
		round(w.pings[len(w.pings)*9/10]), round(w.pings[len(w.pings)*999/1000]), round(w.pings[len(w.pings)-1]))
	return text.String()
}

func round(d time.Duration) time.Duration { return d.Round(100 * time.Microsecond) }

// TestLongest: the node that held the main thread the longest, as VPP shows it.
func TestLongest(t *testing.T) {
	const shown = `Thread 0 vpp_main (lcore 0)
Time 1.0, 10 sec internal node vector rate 0.00 loops/sec 101.20
  vector rates in 1.0000e0, out 0.0000e0, drop 0.0000e0, punt 0.0000e0
             Name               Max Node Clocks  Vectors at Max     Max Clocks      Avg Clocks    Avg Vectors/Call
api-rx-from-ring                     5.00e7              0          0.00e0          1.36e5          0.00e0
pg-input                             1.66e4              1          1.66e4          1.66e4          1.00e0
statseg-collector-process            1.00e8              0          0.00e0          1.36e5          0.00e0
---------------
Thread 1 vpp_wk_0 (lcore 1)
nat44-ed-in2out                      9.00e9              1          1.66e4          1.66e4          1.00e0
`
	got, own := longest(shown, 2e9)
	if want := (hold{took: 25 * time.Millisecond, node: "api-rx-from-ring"}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if want := (hold{took: 50 * time.Millisecond, node: collector}); own != want {
		t.Errorf("%+v, want %+v", own, want)
	}
}
