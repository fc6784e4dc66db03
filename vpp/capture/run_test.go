package capture

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/vlib"

	"github.com/troupe-vpp/troupe/vpp/link"
)

// tracer is a VPP with one trace for all users: an input traces the packets that arrive, one at
// each reading, as long as it is armed.
type tracer struct {
	link.Caller
	arrive string // the input at which packets arrive; "" = none do
	armed  map[string]int
	traced []string
	reads  int
	onRead func(reads int)
	last   string // the input at which a packet arrives while requests are taken back
}

func (v *tracer) Do(_ context.Context, reqs []api.Message) (results []link.Result, _ error) {
	for _, req := range reqs {
		results = append(results, v.command(strings.Fields(req.(*vlib.CliInband).Cmd)))
	}
	return results, nil
}

func (v *tracer) command(line []string) link.Result {
	answer := ""
	switch strings.Join(line[:2], " ") {
	case "show trace":
		v.reads++
		if v.onRead != nil {
			v.onRead(v.reads)
		}
		if v.armed[v.arrive] > 0 {
			v.armed[v.arrive]--
			v.traced = append(v.traced, v.arrive)
		}
		answer = "------------------- Start of thread 0 vpp_main -------------------\n"
		for i, node := range v.traced {
			answer += fmt.Sprintf("Packet %d\n\n00:00:00:024328: %s\n  text\n", i+1, node)
		}
	case "trace add":
		n := 0
		if _, _ = fmt.Sscan(line[3], &n); n < 0 && v.last == line[2] {
			v.traced = append(v.traced, v.last)
		}
		if line[2] != "pg-input" && line[2] != "memif-input" {
			answer = "unknown input"
		} else if v.armed[line[2]] += n; v.armed[line[2]] == 0 {
			delete(v.armed, line[2])
		}
	case "clear trace":
		v.armed, v.traced = map[string]int{}, nil
	}
	return link.Result{Reply: &vlib.CliInbandReply{Reply: answer}}
}

// TestOthers: what other users have armed, where packets arrive => error, and what is there
// afterwards.
func TestOthers(t *testing.T) {
	for name, c := range map[string]struct {
		armed  map[string]int
		arrive string
		later  func(*tracer) // when Run traces
		err    error
		traced int
		left   map[string]int
	}{
		"nobody else":                 {nil, "pg-input", nil, nil, 0, map[string]int{}},
		"nobody else, and no packets": {nil, "", nil, nil, 0, map[string]int{}},
		"armed, with packets":         {map[string]int{"pg-input": 5}, "pg-input", nil, ErrInUse, 1, map[string]int{"pg-input": 4}},
		"armed, without packets":      {map[string]int{"pg-input": 5}, "", nil, nil, 0, map[string]int{"pg-input": 5}},
		"a packet at the last moment": {nil, "", func(v *tracer) { v.last = "pg-input" }, nil, 0, map[string]int{}},
		"armed at another node":       {map[string]int{"other-input": 5}, "", nil, nil, 0, map[string]int{"other-input": 5}},
		"armed meanwhile at another node": {
			nil, "", func(v *tracer) { v.armed["other-input"], v.arrive = 9, "other-input" }, ErrInUse, 3, map[string]int{"pg-input": 2, "memif-input": 2, "other-input": 6},
		},
		"armed meanwhile at the same node": {
			nil, "pg-input", func(v *tracer) { v.armed["pg-input"] = 9 }, ErrInUse, 3, map[string]int{"pg-input": 6, "memif-input": 2},
		},
	} {
		v := &tracer{armed: map[string]int{}, arrive: c.arrive}
		for node, n := range c.armed {
			v.armed[node] = n
		}
		ctx, stop := context.WithCancel(t.Context())
		v.onRead = func(reads int) {
			if reads == 3 && c.later != nil { // two looks before it
				c.later(v)
			}
			if reads == 4 {
				stop()
			}
		}
		_, _, err := Run(ctx, v, Options{Scan: 2, Most: 10, Match: func(*Packet) bool { return true }, Every: time.Nanosecond})
		stop()
		if !errors.Is(err, c.err) || (err == nil) != (c.err == nil) || len(v.traced) != c.traced || fmt.Sprint(v.armed) != fmt.Sprint(c.left) {
			t.Errorf("%s: %v, traced %v, armed %v", name, err, v.traced, v.armed)
		}
	}
}

// TestInterrupted: packets that were captured before the end come back, and the trace is cleared.
func TestInterrupted(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	v := &tracer{armed: map[string]int{}, arrive: "pg-input"}
	v.onRead = func(reads int) {
		if reads == 4 {
			interrupt()
		}
	}
	packets, seen, err := Run(ctx, v, Options{Scan: 20, Most: 10, Match: func(*Packet) bool { return true }, Every: time.Nanosecond})
	if err != nil || len(packets) != 2 || seen != 2 || len(v.traced)+len(v.armed) > 0 {
		t.Errorf("%d of %d packets, %v; left %v, %v", len(packets), seen, err, v.traced, v.armed)
	}
}
