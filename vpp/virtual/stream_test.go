package virtual

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"testing"
	"time"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/nat44_ed"
	"go.fd.io/govpp/binapi/nat_types"

	"github.com/troupe-vpp/troupe/vpp/link"
	"github.com/troupe-vpp/troupe/vpp/simulator"
)

// instant is a Time in which waiting takes no time.
type instant struct{ now time.Time }

func (i *instant) Now() time.Time { return i.now }
func (i *instant) Park(ready func() bool) {
	if !ready() {
		panic("waits for ever")
	}
}
func (i *instant) Sleep(d time.Duration, _ func() bool) { i.now = i.now.Add(d) }

func add(port uint16) *nat44_ed.Nat44AddDelLbStaticMapping {
	local := func(n byte) nat44_ed.Nat44LbAddrPort {
		return nat44_ed.Nat44LbAddrPort{Addr: [4]byte{10, 1, 1, n}, Port: 8080, Probability: 1}
	}
	return &nat44_ed.Nat44AddDelLbStaticMapping{
		IsAdd: true, ExternalAddr: [4]byte{10, 96, 0, 1}, ExternalPort: port, Protocol: 6, Flags: nat_types.NAT_IS_OUT2IN_ONLY,
		Locals: []nat44_ed.Nat44LbAddrPort{local(1), local(2)}, LocalNum: 2,
	}
}

func enabled(t *testing.T, changed func(RowChange)) *Stream {
	t.Helper()
	s := New(&instant{}, func(*simulator.VPP) {}, changed)
	t.Cleanup(func() { _ = s.VPP.Close() })
	res, err := s.Do(t.Context(), []api.Message{&nat44_ed.Nat44EdPluginEnableDisable{Enable: true}})
	if err != nil || res[0].Err != nil {
		t.Fatal(res, err)
	}
	return s
}

var errVeto = errors.New("not this one")

// veto refuses the second row in VPP's place, and every dump.
func veto(m api.Message) error {
	row, is := m.(*nat44_ed.Nat44AddDelLbStaticMapping)
	if !is || row.ExternalPort == 81 {
		return errVeto
	}
	return nil
}

// TestVetoOfADump: the caller gets the error; a Reader still reads VPP.
func TestVetoOfADump(t *testing.T) {
	s := enabled(t, nil)
	s.Veto = veto
	none := func(api.Message) {}
	if err := s.Dump(t.Context(), &nat44_ed.Nat44LbStaticMappingDump{}, none); !errors.Is(err, errVeto) {
		t.Error(err)
	}
	if err := NewReader(s.VPP).Dump(t.Context(), &nat44_ed.Nat44LbStaticMappingDump{}, none); err != nil {
		t.Error(err)
	}
}

// TestFaults: the result of the caller and the effect in VPP.
func TestFaults(t *testing.T) {
	for name, c := range map[string]struct {
		fault func(*Stream)
		want  []error // of two requests; nil = done
		rows  int
	}{
		"none":                  {func(*Stream) {}, []error{nil, nil}, 2},
		"refused":               {func(s *Stream) { s.Refuse = 1 }, []error{api.UNSPECIFIED, nil}, 1},
		"vetoed":                {func(s *Stream) { s.Veto = veto }, []error{nil, errVeto}, 1},
		"answer lost":           {func(s *Stream) { s.Lose = 1 }, []error{link.ErrUnknown, link.ErrUnknown}, 1},
		"cut behind the second": {func(s *Stream) { s.Cut = 2 }, []error{nil, link.ErrUnknown}, 2},
		"hangs":                 {func(s *Stream) { s.Hang() }, []error{link.ErrUnknown, link.ErrUnknown}, 0},
		"down":                  {func(s *Stream) { s.Disconnect("test") }, []error{link.ErrNotSent, link.ErrNotSent}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			told := 0
			s := enabled(t, func(c RowChange) {
				if c.Refused != (name == "refused" && c.At.Port() == 80) {
					t.Errorf("told of %+v", c)
				}
				if !c.Refused {
					told++
				}
			})
			c.fault(s)
			results, _ := s.Do(t.Context(), []api.Message{add(80), add(81)})
			for i, want := range c.want {
				if !errors.Is(results[i].Err, want) {
					t.Errorf("request %d: %v, want %v", i, results[i].Err, want)
				}
			}
			rows, err := s.Rows()
			if err != nil || len(rows) != c.rows || told != c.rows {
				t.Errorf("%d rows, told of %d, want %d; %v", len(rows), told, c.rows, err)
			}
		})
	}
}

// TestRowChanges: changes are reported, refused ones are not.
func TestRowChanges(t *testing.T) {
	var told []RowChange
	s := enabled(t, func(c RowChange) { told = append(told, c) })
	at := netip.MustParseAddrPort("10.96.0.1:80")
	local := func(add bool) api.Message {
		return &nat44_ed.Nat44LbStaticMappingAddDelLocal{
			IsAdd: add, ExternalAddr: at.Addr().As4(), ExternalPort: at.Port(), Protocol: 6,
			Local: nat44_ed.Nat44LbAddrPort{Addr: [4]byte{10, 1, 1, 3}, Port: 8080, Probability: 1},
		}
	}
	whole := func(isAdd bool) api.Message {
		m := add(80)
		m.IsAdd = isAdd
		return m
	}
	if _, err := s.Do(t.Context(), []api.Message{whole(true), whole(true), local(true), local(true), local(false), whole(false)}); err != nil {
		t.Fatal(err)
	}
	backend := netip.MustParseAddrPort("10.1.1.3:8080")
	want := []RowChange{{At: at, Added: true}, {At: at, Backend: backend, Added: true}, {At: at, Backend: backend}, {At: at}}
	if !slices.Equal(told, want) {
		t.Errorf("told %v, want %v", told, want)
	}
}

// TestResume: VPP executes requests that were sent while it hung before later ones.
func TestResume(t *testing.T) {
	s := enabled(t, nil)
	s.Hang()
	if _, err := s.Do(t.Context(), []api.Message{add(80)}); err != nil {
		t.Fatal(err)
	}
	s.Connect() // does not work yet
	if _, err := s.Do(context.Background(), []api.Message{add(81)}); !errors.Is(err, link.ErrDown) {
		t.Errorf("connected to a VPP that hangs: %v", err)
	}
	s.Resume()
	s.Connect()
	read := 0
	if err := s.Dump(t.Context(), &nat44_ed.Nat44LbStaticMappingDump{}, func(api.Message) { read++ }); err != nil || read != 1 || s.Reads != 1 {
		t.Errorf("%d rows, %v", read, err)
	}
	if err := s.Crash(); err != nil {
		t.Fatal(err)
	}
	if rows, err := s.Rows(); err != nil || len(rows) != 0 {
		t.Errorf("after a crash: %v, %v", rows, err)
	}
}
