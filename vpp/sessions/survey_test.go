package sessions

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.fd.io/govpp/binapi/nat44_ed"

	"github.com/troupe-vpp/troupe/vpp/link"
	"github.com/troupe-vpp/troupe/vpp/simulator"
)

// output is what VPP 25.10 prints.
const output = `max translations per thread: 64512 fib 0
max translations per thread: 100 fib 1
established tcp LRU min session timeout 7450 (now 400)
udp LRU min session timeout 300 (now 400)
total sessions: 12 (timed out: 5)
tcp sessions:
    total: 6 (timed out: 1)
        established: 4 (timed out: 0)
        transitory: 2 (timed out: 1)
udp sessions:
    total: 4 (timed out: 3)
icmp sessions:
    total: 2 (timed out: 1)
other sessions:
    total: 0 (timed out: 0)
`

func TestParseSummary(t *testing.T) {
	want := Survey{
		Known: true, Limit: 64512, LimitKnown: true, All: Count{12, 5},
		By: [Protocols]Count{TCP: {6, 1}, UDP: {4, 3}, ICMP: {2, 1}},
	}
	got, err := ParseSummary(output)
	if d := cmp.Diff(want, got); d != "" || err != nil {
		t.Errorf("%v (-want +got)\n%s", err, d)
	}
	off, err := ParseSummary(output[strings.Index(output, "total"):])
	if err != nil || off.LimitKnown || off.All.Sessions != 12 {
		t.Errorf("plugin off: %+v, %v", off, err)
	}
	for name, text := range map[string]string{
		"nothing": "", "another command": "unknown input `show nat44 summary'\n", "half": output[:strings.Index(output, "icmp")],
	} {
		if _, err := ParseSummary(text); !errors.Is(err, ErrNotUnderstood) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func FuzzParseSummary(f *testing.F) {
	f.Add(output)
	f.Add("total sessions: 99999999999999999999 (timed out: -1)\n")
	f.Add("tcp sessions:\ntcp sessions:\n    total: 1 (timed out: 1)")
	f.Fuzz(func(t *testing.T, text string) {
		s, err := ParseSummary(text)
		if s.Known != (err == nil) {
			t.Errorf("%+v, %v", s, err)
		}
	})
}

func TestLook(t *testing.T) {
	r := mixed(t)
	s, err := Look(t.Context(), r.link)
	want := Survey{
		Known: true, Limit: 1000, LimitKnown: true, All: Count{35, 20}, By: [Protocols]Count{TCP: {5, 0}, UDP: {30, 20}},
	}
	if d := cmp.Diff(want, s); d != "" || err != nil {
		t.Errorf("%v (-want +got)\n%s", err, d)
	}
	if err := Raise(t.Context(), r.link, 5000); err != nil {
		t.Fatal(err)
	}
	if s, err := Look(t.Context(), r.link); err != nil || s.Limit != 5000 {
		t.Errorf("after raising: %+v, %v", s, err)
	}
	r.Inject(simulator.Fault{Message: "nat44_set_session_limit", Retval: -1})
	if err := Raise(t.Context(), r.link, 6000); err == nil || !strings.Contains(err.Error(), "6000") {
		t.Errorf("refused: %v", err)
	}
}

func TestAsk(t *testing.T) {
	r := newRig(t, 0)
	if u, _, err := Ask(t.Context(), r.link); err != nil || u != (Usage{}) {
		t.Errorf("plugin off: %+v, %v", u, err)
	}
	r.enable(1000)
	r.fill(simulator.ProtoUDP, 12)
	want := Usage{Enabled: true, Busiest: 12, Total: 12, Base: 1000, Costly: true}
	u, s, err := Ask(t.Context(), r.link)
	if err != nil || u != want || !s.Known || s.By[UDP].Sessions != 12 {
		t.Errorf("%+v, %+v, %v", u, s, err)
	}
	// A VPP that prints something else: the users are summed up.
	odd := &oddCLI{Caller: r.link}
	if u, s, err := Ask(t.Context(), odd); err != nil || u != want || s.Known {
		t.Errorf("%+v, %+v, %v", u, s, err)
	}
	r.Crash()
	if _, _, err := Ask(t.Context(), r.link); !errors.Is(err, link.ErrDown) && !errors.Is(err, link.ErrUnknown) && !errors.Is(err, link.ErrNotSent) {
		t.Errorf("VPP is dead: %v", err)
	}
	if n := r.Counters().Of((&nat44_ed.Nat44UserDump{}).GetMessageName()); n != 1 {
		t.Errorf("users dumped %d times", n)
	}
}
