package heap

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"

	"go.fd.io/govpp/adapter"

	"github.com/troupe-vpp/troupe/vpp/link"
	"github.com/troupe-vpp/troupe/vpp/stats"
)

// Command shows the main heap. For that VPP reads each of its pages, and does nothing else in the
// meantime: 150 ms with a heap of 1 GiB in pages of 4 KiB.
const Command = "show memory main-heap"

// State is the main heap of VPP.
type State struct {
	// Total and Free are bytes; a Total of 0 says that nothing is known.
	Total, Free int
	// Beat is the number of the statistics update from which the figures come; 0 = they are
	// current.
	Beat int
}

// ErrNotUnderstood says that VPP's answer to Command is not the expected text.
var ErrNotUnderstood = errors.New("the output of VPP is not understood")

// shown is the line of the output with the figures: "total: 1023.99M, used: 66.94M, free: 957.05M,
// ...".
var shown = regexp.MustCompile(`total: ([0-9.]+)([KMG]?), used: [0-9.]+[KMG]?, free: ([0-9.]+)([KMG]?)`)

// Entries of the statistics segment.
const (
	entryHeap  = "/mem/main heap" // gauges by heap: total, used, free, ...
	entryBeat  = "/sys/heartbeat" // of all updates
	statistics = "^(" + entryHeap + "|" + entryBeat + ")$"
	freeGauge  = 2
)

// Statistics reads the main heap as it was at the last update of VPP's statistics, which costs VPP
// nothing. Errors of Read wrap stats.ErrNone or stats.ErrSilent.
type Statistics = stats.Reader[State]

// NewStatistics returns a reader of the statistics socket at path.
func NewStatistics(path string) *Statistics { return stats.NewReader(path, statistics, stateOf) }

// stateOf translates the entries.
func stateOf(found []adapter.StatEntry) (s State, err error) {
	for _, e := range found {
		switch data := e.Data.(type) {
		case adapter.SimpleCounterStat:
			if string(e.Name) == entryHeap && len(data) > 0 && len(data[0]) > freeGauge {
				s.Total, s.Free = int(data[0][0]), int(data[0][freeGauge])
			}
		case adapter.ScalarStat:
			if string(e.Name) == entryBeat {
				s.Beat = int(data)
			}
		}
	}
	if s.Total <= 0 || s.Free < 0 || s.Beat <= 0 {
		return State{}, fmt.Errorf("read the main heap: %w: not in the segment", stats.ErrNone)
	}
	return s, nil
}

// Read asks VPP for the state of its main heap. An error wraps what the link reports, or
// ErrNotUnderstood.
func Read(ctx context.Context, c link.Caller) (State, error) {
	text, err := link.Command(ctx, c, Command)
	if err != nil {
		return State{}, fmt.Errorf("read the main heap: %w", err)
	}
	return parse(text)
}

// parse reads the output of Command.
func parse(text string) (State, error) {
	m := shown.FindStringSubmatch(text)
	if m == nil {
		return State{}, fmt.Errorf("read the main heap: %w: %.60q", ErrNotUnderstood, text)
	}
	return State{Total: bytes(m[1], m[2]), Free: bytes(m[3], m[4])}, nil
}

// bytes reads a number with a unit of VPP.
func bytes(number, unit string) int {
	n, err := strconv.ParseFloat(number, 64)
	if err != nil {
		return 0
	}
	shift := map[string]int{"": 0, "K": 10, "M": 20, "G": 30}[unit]
	return int(n * float64(int(1)<<shift))
}
