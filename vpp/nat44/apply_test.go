package nat44

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"go.fd.io/govpp/api"

	"github.com/troupe-vpp/troupe/vpp/batch"
	"github.com/troupe-vpp/troupe/vpp/link"
)

// answer is a Caller that gives every message the same answer.
type answer struct {
	err  error
	down error
	sent int
}

func (a *answer) Do(_ context.Context, reqs []api.Message) ([]link.Result, error) {
	a.sent += len(reqs)
	results := make([]link.Result, len(reqs))
	for i := range results {
		results[i].Err = a.err
	}
	return results, a.down
}

func (a *answer) Dump(context.Context, api.Message, func(api.Message)) error { return a.err }

// everyOp returns one operation of every verb.
func everyOp() []Op {
	row := newRow("10.96.0.1:80/TCP", "10.1.1.1:80", "10.1.1.2:80")
	return []Op{
		{Verb: Enable, Sessions: 1000},
		{Verb: Forwarding},
		{Verb: SetTimeouts, Timeouts: DefaultTimeouts()},
		{Verb: AddAddress, Addr: loopback},
		{Verb: AddRoles, Interface: 3, Roles: Both},
		{Verb: AddRow, Key: row.Key, Row: &row},
		{Verb: AddLocal, Key: row.Key, Local: locals("10.1.1.3:80")[0], After: Load{5, 21}},
		{Verb: DelLocal, Key: row.Key, Local: locals("10.1.1.3:80")[0], After: Load{4, 14}},
		{Verb: DelRow, Key: row.Key, Row: &row},
		{Verb: DelRoles, Interface: 3, Roles: Both},
		{Verb: DelAddress, Addr: loopback},
	}
}

// TestMeanings is the table of all known answers of VPP, and their meaning for every operation.
func TestMeanings(t *testing.T) {
	type outcome struct {
		err     error
		unknown bool
	}
	done := outcome{}
	special := map[cause]outcome{
		{Enable, -170}:    done,
		{AddAddress, -81}: done,
		{DelAddress, -6}:  done,
		{AddRoles, -2}:    {ErrNoInterface, true},
		{AddRoles, -81}:   {ErrOutput, true},
		{DelRoles, -2}:    done,
		{DelRoles, -6}:    done,
		{AddRow, -81}:     {ErrExists, true},
		{AddRow, -7}:      {link.ErrUnsafe, false},
		{DelRow, -6}:      done,
		{DelRow, -7}:      {ErrForeign, true},
		{AddLocal, -81}:   {ErrExists, true},
		{AddLocal, -6}:    {ErrVanished, true},
		{AddLocal, -7}:    {ErrForeign, true},
		{DelLocal, -6}:    {nil, true},
		{DelLocal, -1}:    {ErrTooFew, true},
		{DelLocal, -7}:    {ErrForeign, true},
	}
	for _, op := range everyOp() {
		for _, retval := range []int32{-1, -2, -6, -7, -30, -81, -126, -168, -169, -170, 1} {
			want, known := special[cause{op.Verb, retval}]
			switch {
			case retval == -126:
				want = outcome{ErrDisabled, true}
			case !known:
				want = outcome{batch.ErrRejected, false}
			}
			if op.Roles == Both && want.err != nil {
				want.unknown = true
			}
			result := Apply(t.Context(), &answer{err: &link.RetvalError{Message: "m", Retval: retval}}, []Op{op})[0]
			if !errors.Is(result.Err, want.err) || (result.Err == nil) != (want.err == nil) || result.Unknown != want.unknown {
				t.Errorf("%s answered with %d: error %v, unknown %v; want %v, %v", op.Verb, retval, result.Err, result.Unknown, want.err, want.unknown)
			}
			if got, _ := link.Retval(result.Err); result.Err != nil && got != retval {
				t.Errorf("%s answered with %d: the error says %d", op.Verb, retval, got)
			}
		}
	}
}

func TestApplyWithoutAnswer(t *testing.T) {
	for _, c := range []struct {
		name     string
		caller   answer
		err      error
		unknown  bool
		messages bool
	}{
		{"done", answer{}, nil, false, true},
		{"unknown", answer{err: fmt.Errorf("request: %w", link.ErrUnknown)}, link.ErrUnknown, true, true},
		{"not sent", answer{err: link.ErrNotSent}, link.ErrNotSent, false, false},
		{"refused", answer{err: link.ErrRefused}, link.ErrRefused, false, false},
		{"unsupported", answer{err: link.ErrUnsupported}, link.ErrUnsupported, false, false},
		{"down", answer{down: link.ErrDown}, link.ErrDown, false, false},
		{"cancelled", answer{down: context.Canceled}, context.Canceled, false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, result := range Apply(t.Context(), &c.caller, everyOp()) {
				want := 0
				if c.messages {
					want = len(Messages(result.Op))
				}
				if !errors.Is(result.Err, c.err) || (result.Err == nil) != (c.err == nil) || result.Unknown != c.unknown || result.Messages != want {
					t.Errorf("%s: error %v, unknown %v, %d messages", result.Op, result.Err, result.Unknown, result.Messages)
				}
			}
		})
	}
}

// TestApplyInPart: after half of an operation the state of VPP is not known.
func TestApplyInPart(t *testing.T) {
	m := newModel()
	m.enabled, m.sessions = true, 1000
	m.fault = func(api.Message) error {
		m.fault = func(api.Message) error { return link.ErrNotSent }
		return nil
	}
	result := Apply(t.Context(), m, []Op{{Verb: AddRoles, Interface: 1, Roles: Both}})[0]
	if !errors.Is(result.Err, link.ErrNotSent) || !result.Unknown || result.Messages != 1 {
		t.Errorf("error %v, unknown %v, %d messages", result.Err, result.Unknown, result.Messages)
	}
	if m.roles[1] != Outside {
		t.Errorf("the first role is %s; inside alone would be a danger", m.roles[1])
	}
}

// TestApplySkips: where one operation of a row must not be sent, no operation of this row is sent,
// and all others are.
func TestApplySkips(t *testing.T) {
	web, dns := newRow("10.96.0.1:80/TCP", "10.1.1.1:80"), newRow("10.96.0.10:53/UDP", "10.1.1.2:53")
	m := newModel()
	m.enabled, m.sessions = true, 1000
	m.load(web)
	results := Apply(t.Context(), m, []Op{
		{Verb: AddLocal, Key: web.Key, Local: locals("10.1.1.9:80")[0], After: Load{4, 14}},
		{Verb: DelLocal, Key: web.Key, Local: web.Locals[0], After: Load{2, 0}},
		{Verb: AddRow, Key: dns.Key, Row: &dns},
		{Verb: AddRow, Key: mustKey("10.96.0.2:80/TCP")},
	})
	for i, want := range []error{link.ErrSkipped, link.ErrUnsafe, nil, link.ErrUnsafe} {
		if !errors.Is(results[i].Err, want) || (results[i].Err == nil) != (want == nil) || (results[i].Messages == 0) != (want != nil) {
			t.Errorf("%s: error %v, %d messages; want %v", results[i].Op.Verb, results[i].Err, results[i].Messages, want)
		}
	}
	if len(m.rows[web.Key].live()) != 4 || m.rows[dns.Key] == nil {
		t.Error("the wrong operations were sent")
	}
}

// TestApplyRefusesWhatTheLinkRefuses: a row that passes our own check but not the link's is not
// half applied either.
func TestApplyRefusesWhatTheLinkRefuses(t *testing.T) {
	row := newRow("10.96.0.1:80/TCP", "10.1.1.1:80")
	row.Tag = fmt.Sprintf("%s%064d", TagPrefix, 0)
	caller := &answer{}
	results := Apply(t.Context(), caller, []Op{{Verb: DelRow, Key: row.Key, Row: &row}, {Verb: AddRow, Key: row.Key, Row: &row}})
	if !errors.Is(results[0].Err, link.ErrSkipped) || !errors.Is(results[1].Err, link.ErrRefused) || caller.sent != 0 {
		t.Errorf("errors %v and %v, %d messages sent", results[0].Err, results[1].Err, caller.sent)
	}
}

func TestApplyNothing(t *testing.T) {
	caller := &answer{}
	if results := Apply(t.Context(), caller, nil); len(results) != 0 || caller.sent != 0 {
		t.Errorf("%d results, %d messages", len(results), caller.sent)
	}
}

func TestOpCheck(t *testing.T) {
	row := newRow("10.96.0.1:80/TCP", "10.1.1.1:80")
	light, heavy, long := row.clone(), row.clone(), row.clone()
	light.Locals[0].Weight = 0
	heavy.Locals = append(heavy.Locals, Local{Weight: 249})
	long.Locals = make([]Local, 254)
	for _, c := range []struct {
		op   Op
		safe bool
	}{
		{Op{Verb: AddRow, Row: &row}, true},
		{Op{Verb: AddRow, Row: &light}, false},
		{Op{Verb: AddRow, Row: &heavy}, false},
		{Op{Verb: AddRow, Row: &long}, false},
		{Op{Verb: AddRow}, false},
		{Op{Verb: DelRow, Row: &light}, true},
		{Op{Verb: AddLocal, After: Load{255, 255}}, true},
		{Op{Verb: AddLocal, After: Load{256, 255}}, false},
		{Op{Verb: AddLocal, After: Load{255, 256}}, false},
		{Op{Verb: DelLocal, After: Load{2, 1}}, true},
		{Op{Verb: DelLocal, After: Load{1, 1}}, false},
		{Op{Verb: DelLocal, After: Load{2, 0}}, false},
		{Op{Verb: DelLocal}, false},
		{Op{Verb: Enable}, true},
	} {
		if err := c.op.Check(); (err == nil) != c.safe || err != nil && !errors.Is(err, link.ErrUnsafe) {
			t.Errorf("%s after=%+v: %v", c.op.Verb, c.op.After, err)
		}
	}
}
