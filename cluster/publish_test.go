package cluster

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestDecidePublish(t *testing.T) {
	stored := func(addresses string) func(*model) {
		return func(m *model) { m.set(testLayout.addresses("me"), `{"name":"me","vppAddresses":[`+addresses+`]}`) }
	}
	for name, c := range map[string]struct {
		store     func(*model)
		want      *[]string
		writes    bool
		published bool // in the end
		reason    string
		left      string // in the end
	}{
		"never asked": {store: stored(`"10.0.0.1/24"`), left: "[10.0.0.1/24]"},
		"first time":  {want: &[]string{"10.0.0.1/24"}, writes: true, published: true, left: "[10.0.0.1/24]"},
		"the same":    {store: stored(`"10.0.0.1/24"`), want: &[]string{"10.0.0.1/24"}, published: true, left: "[10.0.0.1/24]"},
		"the same in another order": {
			store: stored(`"10.0.0.2/24","10.0.0.1/24"`), want: &[]string{"10.0.0.1/24", "10.0.0.2/24"}, published: true, left: "[10.0.0.1/24 10.0.0.2/24]",
		},
		"another prefix": {
			store: stored(`"10.0.0.1/24"`), want: &[]string{"10.0.0.1/16"}, writes: true, published: true, left: "[10.0.0.1/16]",
		},
		"withdrawn":                   {store: stored(`"10.0.0.1/24"`), want: &[]string{}, writes: true, published: true, left: "[]"},
		"nothing, and nothing stored": {want: &[]string{}, published: true, left: "[]"},
		"repairs what is damaged": {
			store: func(m *model) { m.set(testLayout.addresses("me"), "?") }, want: &[]string{"10.0.0.1/24"}, writes: true, published: true, left: "[10.0.0.1/24]",
		},
		"withdraws what is damaged": {
			store: func(m *model) { m.set(testLayout.addresses("me"), "?") }, want: &[]string{}, writes: true, published: true, left: "[]",
		},
		"an empty record is no key": {store: stored(``), want: &[]string{}, writes: true, published: true, left: "[]"},
		"invalid entries":           {want: &[]string{"10.0.0.1/24", "10.0.0.9"}, writes: true, reason: "10.0.0.9", left: "[10.0.0.1/24]"},
	} {
		t.Run(name, func(t *testing.T) {
			m := newModel()
			m.record(testLayout, 1, "me", "u")
			if c.store != nil {
				c.store(m)
			}
			in := input{self: identity{name: "me", held: 1, heldUID: "u", confirmed: true}, connected: true, keys: m.keyspace(testLayout, nil)}
			if c.want != nil {
				in.want = want(*c.want)
			}
			d := decide(in)
			if writes := d.op != nil && m.apply(d.op); writes != c.writes {
				t.Errorf("writes = %v, want %v", writes, c.writes)
			}
			in.keys = m.keyspace(testLayout, in.keys)
			d = decide(in)
			if d.op != nil {
				t.Errorf("writes again: %s", d.op.about)
			}
			if d.published != c.published || !strings.Contains(d.reason, c.reason) || c.reason == "" && d.reason != "" {
				t.Errorf("published = %v, reason %q; want %v, %q", d.published, d.reason, c.published, c.reason)
			}
			if diff := cmp.Diff(c.left, fmt.Sprint(in.keys.addresses["me"].value.GetVppAddresses())); diff != "" {
				t.Errorf("stored (-want +got):\n%s", diff)
			}
		})
	}
}

// TestPublishNeedsTheID shows that neither a node without an ID nor one that has just lost it
// publishes.
func TestPublishNeedsTheID(t *testing.T) {
	m := newModel()
	m.record(testLayout, 1, "me", "u")
	in := input{self: identity{name: "me", held: 1, heldUID: "u", confirmed: true}, connected: true, keys: m.keyspace(testLayout, nil)}
	in.want = want([]string{"10.0.0.1/24"})
	d := decide(in)
	m.drop(testLayout.id(1), testLayout.name("me"))
	if m.apply(d.op) {
		t.Error("published after the ID was lost")
	}
	in.keys = m.keyspace(testLayout, in.keys)
	if d = decide(in); d.op.verb != verbClaim || d.published {
		t.Errorf("without an ID: %s, published = %v; want the claim first", d.op.verb, d.published)
	}
}

func TestPublishTooMuch(t *testing.T) {
	m := newModel()
	m.record(testLayout, 1, "me", "u")
	in := input{self: identity{name: "me", held: 1, heldUID: "u", confirmed: true}, connected: true, keys: m.keyspace(testLayout, nil)}
	var many []string
	for i := range 8000 {
		many = append(many, fmt.Sprintf("10.%d.%d.1/24", i/256, i%256))
	}
	in.want = want(many)
	if d := decide(in); d.op != nil || d.published || !strings.Contains(d.reason, ErrTooLarge.Error()) {
		t.Errorf("operation %v, reason %q; want a refusal", d.op, d.reason)
	}
}
