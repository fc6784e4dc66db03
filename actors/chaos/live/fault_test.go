package live

import (
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestFaultCheck(t *testing.T) {
	second := Duration(time.Second)
	for name, tt := range map[string]struct {
		fault Fault
		want  string // fields that are wrong, joined
	}{
		"kill":                     {Fault{Kind: Kill, Actor: "nat44"}, ""},
		"panic":                    {Fault{Kind: Panic, Actor: "a", Phase: PhaseAfter, Message: "Render", Rate: 0.5, Times: 3, For: second}, ""},
		"panic in the start":       {Fault{Kind: Panic, Actor: "a", Phase: PhaseStart}, ""},
		"suspend":                  {Fault{Kind: Suspend, Actor: "a", For: second}, ""},
		"drop":                     {Fault{Kind: Drop, Actor: "a", Message: "Render", Rate: 1}, ""},
		"delay":                    {Fault{Kind: Delay, Actor: "a", By: second, Rate: 0.1}, ""},
		"crashloop":                {Fault{Kind: CrashLoop, Actor: "a", For: second}, ""},
		"no kind":                  {Fault{Actor: "a"}, "fault"},
		"unknown kind":             {Fault{Kind: "dance", Actor: "a"}, "fault"},
		"no actor":                 {Fault{Kind: Kill}, "actor"},
		"kill that lasts":          {Fault{Kind: Kill, Actor: "a", For: second, Rate: 1, Message: "X"}, "message rate for"},
		"suspend of a message":     {Fault{Kind: Suspend, Actor: "a", Message: "X", Times: 2, By: second, Phase: PhaseStop}, "phase message by times"},
		"message of a start":       {Fault{Kind: Panic, Actor: "a", Phase: PhaseStart, Message: "X"}, "message"},
		"unknown phase":            {Fault{Kind: Panic, Actor: "a", Phase: "later"}, "phase"},
		"rate above 1":             {Fault{Kind: Drop, Actor: "a", Rate: 1.01}, "rate"},
		"rate that is none":        {Fault{Kind: Drop, Actor: "a", Rate: math.NaN()}, "rate"},
		"negative":                 {Fault{Kind: Panic, Actor: "a", Rate: -1, Times: -1, For: -second}, "rate times for"},
		"too long":                 {Fault{Kind: Suspend, Actor: "a", For: Duration(MostFor) + 1}, "for"},
		"too often":                {Fault{Kind: Panic, Actor: "a", Times: MostTimes + 1}, "times"},
		"delay by nothing":         {Fault{Kind: Delay, Actor: "a"}, "by"},
		"delay by too much":        {Fault{Kind: Delay, Actor: "a", By: Duration(MostDelay) + 1}, "by"},
		"delay by less than never": {Fault{Kind: Delay, Actor: "a", By: -1}, "by"},
	} {
		err := tt.fault.Check()
		var fields []string
		for _, e := range Fields(err) {
			fields = append(fields, e.Field)
		}
		if got := strings.Join(fields, " "); got != tt.want || err != nil != errors.Is(err, ErrInvalid) {
			t.Errorf("%s: %v: fields %q, want %q", name, err, got, tt.want)
		}
	}
}

func TestFaultText(t *testing.T) {
	for want, fault := range map[string]Fault{
		"kill":                                  {Kind: Kill, Actor: "a"},
		"suspend, for 30s":                      {Kind: Suspend, Actor: "a"},
		"delay RenderAck by 500ms, for 1m0s":    {Kind: Delay, Message: "RenderAck", By: Duration(500 * time.Millisecond), For: Duration(time.Minute)},
		"panic before, rate 0.5, for 30s":       {Kind: Panic, Rate: 0.5},
		"panic after Render, 3 times, for 30s":  {Kind: Panic, Phase: PhaseAfter, Message: "Render", Times: 3},
		"crashloop, for 30s":                    {Kind: CrashLoop},
		"drop ServiceSpec, rate 0.25, for 1h0m": {Kind: Drop, Message: "ServiceSpec", Rate: 0.25, For: Duration(time.Hour)},
	} {
		if got := fault.complete().String(); got != want && got != want+"0s" {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestFaultJSON: durations are text, and a fault survives encoding and decoding.
func TestFaultJSON(t *testing.T) {
	f := Fault{Kind: Delay, Actor: "nat44", By: Duration(1500 * time.Millisecond), For: Duration(time.Minute), Rate: 0.5}
	text, err := json.Marshal(f)
	if err != nil {
		t.Fatal(err)
	}
	if want := `{"fault":"delay","actor":"nat44","rate":0.5,"by":"1.5s","for":"1m0s"}`; string(text) != want {
		t.Errorf("%s, want %s", text, want)
	}
	var back Fault
	if err := json.Unmarshal(text, &back); err != nil || back != f {
		t.Errorf("%s", cmp.Diff(f, back))
	}
	if err := json.Unmarshal([]byte(`{"by": "soon"}`), &back); err == nil || !strings.Contains(err.Error(), `"soon" is not a duration`) {
		t.Errorf("%v", err)
	}
}
