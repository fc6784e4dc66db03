package owned

import (
	"context"
	"errors"
	"log/slog"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.fd.io/govpp/api"
	interfaceapi "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/nat44_ed"
	"go.fd.io/govpp/binapi/nat_types"

	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/link"
)

// file is a store in memory that outlives a record.
type file struct{ content []byte }

func (f *file) Load() ([]byte, error) { return f.content, nil }

func (f *file) Save(document []byte) error {
	f.content = document
	return nil
}

// fakeVPP answers requests with errs in turn, nil behind the last, and dumps with details.
type fakeVPP struct {
	errs    []error
	details []api.Message
	sent    func()
}

func (v *fakeVPP) Do(_ context.Context, reqs []api.Message) ([]link.Result, error) {
	if v.sent != nil {
		v.sent()
	}
	results := make([]link.Result, len(reqs))
	for i := range results {
		if i < len(v.errs) {
			results[i].Err = v.errs[i]
		}
	}
	return results, nil
}

func (v *fakeVPP) Dump(_ context.Context, _ api.Message, each func(api.Message)) error {
	for _, d := range v.details {
		each(d)
	}
	return nil
}

func (*fakeVPP) Run(context.Context, func(*messages.LinkState)) error { return nil }

func role(index uint32, add bool) api.Message {
	return &nat44_ed.Nat44InterfaceAddDelFeature{IsAdd: add, SwIfIndex: interface_types.InterfaceIndex(index), Flags: nat_types.NAT_IS_OUTSIDE}
}

func pool(last byte, add bool) api.Message {
	a := [4]byte{203, 0, 113, last}
	return &nat44_ed.Nat44AddDelAddressRange{FirstIPAddress: a, LastIPAddress: a, IsAdd: add}
}

// TestRecord: what was recorded, requests, their outcomes => what is recorded.
func TestRecord(t *testing.T) {
	refused := &link.RetvalError{Retval: -1}
	one, two := RoleOf(1, false), RoleOf(2, false)
	five := Object{Kind: Pool, Value: "203.0.113.5"}
	for name, c := range map[string]struct {
		before []Object
		reqs   []api.Message
		errs   []error
		want   []Object
	}{
		"added":                 {nil, []api.Message{role(1, true), pool(5, true)}, nil, []Object{one, five}},
		"refused":               {nil, []api.Message{role(1, true), role(2, true)}, []error{refused}, []Object{two}},
		"not sent":              {nil, []api.Message{role(1, true)}, []error{link.ErrNotSent}, nil},
		"unknown whether added": {nil, []api.Message{role(1, true)}, []error{link.ErrUnknown}, []Object{one}},
		"added again, refused":  {[]Object{one}, []api.Message{role(1, true)}, []error{refused}, []Object{one}},
		"deleted":               {[]Object{one, five}, []api.Message{role(1, false)}, nil, []Object{five}},
		"refused to delete":     {[]Object{one}, []api.Message{role(1, false)}, []error{refused}, []Object{one}},
		"replaced":              {[]Object{one}, []api.Message{role(1, false), role(1, true)}, nil, []Object{one}},
		"replaced in vain":      {[]Object{one}, []api.Message{role(1, false), role(1, true)}, []error{nil, refused}, nil},
		"nothing of ours":       {[]Object{one}, []api.Message{&nat44_ed.Nat44ForwardingEnableDisable{}}, nil, []Object{one}},
	} {
		store := &file{}
		r := Open(store, slog.New(slog.DiscardHandler))
		r.Connected("boot1")
		r.begin(c.before)
		r.end(c.before, nil)
		w := &Watched{Runner: &fakeVPP{errs: c.errs}, Record: r}
		if _, err := w.Do(t.Context(), c.reqs); err != nil {
			t.Fatal(err)
		}
		for _, record := range []*Record{r, Open(store, slog.New(slog.DiscardHandler))} {
			got, want := record.begin(nil), map[Object]bool{}
			for _, o := range c.want {
				want[o] = true
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", name, diff)
			}
		}
	}
}

// TestCrash: a process that ends while VPP carries out a request has recorded the object.
func TestCrash(t *testing.T) {
	store := &file{}
	vpp := &fakeVPP{}
	w := &Watched{Runner: vpp, Record: Open(store, slog.New(slog.DiscardHandler))}
	vpp.sent = func() {
		if !Open(store, slog.New(slog.DiscardHandler)).Has(RoleOf(1, false)) {
			t.Error("sent before it was recorded")
		}
	}
	if _, err := w.Do(t.Context(), []api.Message{role(1, true)}); err != nil {
		t.Fatal(err)
	}
}

// TestForgotten: what happens to VPP => the record does not claim what others made meanwhile.
func TestForgotten(t *testing.T) {
	all := &interfaceapi.SwInterfaceDump{SwIfIndex: ^interface_types.InterfaceIndex(0)}
	shows := func(index uint32, name string) api.Message {
		return &interfaceapi.SwInterfaceDetails{SwIfIndex: interface_types.InterfaceIndex(index), InterfaceName: name}
	}
	for name, c := range map[string]struct {
		dump    api.Message
		details []api.Message
		boot    string
		want    bool
	}{
		"the same":                    {all, []api.Message{shows(1, "tap1")}, "boot1", true},
		"another start of VPP":        {all, []api.Message{shows(1, "tap1")}, "boot2", false},
		"the interface is gone":       {all, nil, "boot1", false},
		"its index has another name":  {all, []api.Message{shows(1, "tap7")}, "boot1", false},
		"a dump of other interfaces":  {&interfaceapi.SwInterfaceDump{SwIfIndex: 7}, nil, "boot1", true},
		"VPP has the role":            {&nat44_ed.Nat44InterfaceDump{}, []api.Message{&nat44_ed.Nat44InterfaceDetails{SwIfIndex: 1, Flags: nat_types.NAT_IS_OUTSIDE}}, "boot1", true},
		"VPP has another role":        {&nat44_ed.Nat44InterfaceDump{}, []api.Message{&nat44_ed.Nat44InterfaceDetails{SwIfIndex: 1, Flags: nat_types.NAT_IS_INSIDE}}, "boot1", false},
		"a dump of something else":    {&nat44_ed.Nat44AddressDump{}, nil, "boot1", true},
		"a dump that no kind matches": {&nat44_ed.Nat44LbStaticMappingDump{}, nil, "boot1", true},
	} {
		vpp := &fakeVPP{details: []api.Message{shows(1, "tap1")}}
		w := &Watched{Runner: vpp, Record: Open(Memory{}, slog.New(slog.DiscardHandler))}
		w.Record.Connected("boot1")
		_, err := w.Do(t.Context(), []api.Message{role(1, true)})
		err = errors.Join(err, w.Dump(t.Context(), all, func(api.Message) {}))
		vpp.details = c.details
		w.Record.Connected(c.boot)
		if err = errors.Join(err, w.Dump(t.Context(), c.dump, func(api.Message) {})); err != nil {
			t.Fatal(err)
		}
		if got := w.Record.Has(RoleOf(1, false)); got != c.want {
			t.Errorf("%s: recorded %t, want %t", name, got, c.want)
		}
	}
}

// TestUnreadable: a record that cannot be read is empty, so that everything is kept.
func TestUnreadable(t *testing.T) {
	for _, content := range []string{"", "{", `{"version":2,"objects":[{"kind":"nat44-role","interface":1,"value":"outside"}]}`} {
		if Open(&file{[]byte(content)}, slog.New(slog.DiscardHandler)).Has(RoleOf(1, false)) {
			t.Errorf("%q is a record", content)
		}
	}
}
