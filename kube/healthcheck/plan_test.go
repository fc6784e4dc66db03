package healthcheck

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/troupe-vpp/troupe/messages"
)

// planText renders a plan, one line per address and per refusal.
func planText(p planned) []string {
	var lines []string
	for addr, c := range p.owners {
		lines = append(lines, fmt.Sprintf("%s %s %s=%d", network(addr), addr, c.Service, c.Health.GetLocalEndpoints()))
	}
	for _, problem := range p.refused {
		lines = append(lines, fmt.Sprintf("! %s %s: %v", problem.Service, problem.Address, problem.Err))
	}
	slices.Sort(lines)
	return lines
}

func TestPlan(t *testing.T) {
	for _, test := range []struct {
		name string
		want []Check
		plan []string
	}{
		{"nothing", nil, nil},
		{"one service", []Check{check("a/b", 1, 2, "192.0.2.1:30000")}, []string{"tcp4 192.0.2.1:30000 a/b=2"}},
		{
			"a listener for each address",
			[]Check{check("a/b", 1, 2, "192.0.2.1:30000", "192.0.2.2:30000")},
			[]string{"tcp4 192.0.2.1:30000 a/b=2", "tcp4 192.0.2.2:30000 a/b=2"},
		},
		{
			"families count apart",
			[]Check{check("a/b", 1, 2, "192.0.2.1:30000"), check("a/b", 1, 0, "[2001:db8::1]:30000")},
			[]string{"tcp4 192.0.2.1:30000 a/b=2", "tcp6 [2001:db8::1]:30000 a/b=0"},
		},
		{
			"wildcards of both families do not collide",
			[]Check{check("a/b", 1, 2, "0.0.0.0:30000"), check("a/c", 1, 0, "[::]:30000")},
			[]string{"tcp4 0.0.0.0:30000 a/b=2", "tcp6 [::]:30000 a/c=0"},
		},
		{
			"the older service owns a contested address",
			[]Check{check("a/a", 2, 1, "192.0.2.1:30000"), check("z/z", 1, 1, "192.0.2.1:30000")},
			[]string{"! a/a 192.0.2.1:30000: the address belongs to another service, z/z", "tcp4 192.0.2.1:30000 z/z=1"},
		},
		{
			"of the same age the one with the smaller key",
			[]Check{check("b/b", 1, 1, "192.0.2.1:30000"), check("a/z", 1, 1, "192.0.2.1:30000"), check("c/c", 1, 1, "192.0.2.1:30000")},
			[]string{
				"! b/b 192.0.2.1:30000: the address belongs to another service, a/z",
				"! c/c 192.0.2.1:30000: the address belongs to another service, a/z", "tcp4 192.0.2.1:30000 a/z=1",
			},
		},
		{
			"contested on one address only",
			[]Check{check("a/b", 1, 1, "192.0.2.1:30000"), check("a/c", 2, 1, "192.0.2.1:30000", "192.0.2.2:30000")},
			[]string{
				"! a/c 192.0.2.1:30000: the address belongs to another service, a/b", "tcp4 192.0.2.1:30000 a/b=1",
				"tcp4 192.0.2.2:30000 a/c=1",
			},
		},
		{
			"a service does not contest itself",
			[]Check{check("a/b", 1, 1, "192.0.2.1:30000", "192.0.2.1:30000"), check("a/b", 1, 3, "192.0.2.1:30000")},
			[]string{"tcp4 192.0.2.1:30000 a/b=3"},
		},
		{
			"not an address",
			[]Check{check("a/b", 1, 1, "nonsense", "192.0.2.1:0", "192.0.2.1:30000")},
			[]string{
				`! a/b 192.0.2.1:0: not an address and a port: "192.0.2.1:0"`, `! a/b nonsense: not an address and a port: "nonsense"`,
				"tcp4 192.0.2.1:30000 a/b=1",
			},
		},
		{
			"mapped IPv4",
			[]Check{check("a/b", 1, 1, "[::ffff:192.0.2.1]:30000"), check("a/c", 2, 1, "192.0.2.1:30000")},
			[]string{"! a/c 192.0.2.1:30000: the address belongs to another service, a/b", "tcp4 192.0.2.1:30000 a/b=1"},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			if diff := cmp.Diff(test.plan, planText(plan(test.want))); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestPlanDoesNotDependOnTheOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		address := rapid.Custom(func(t *rapid.T) string {
			return fmt.Sprintf("192.0.2.%d:3000%d", rapid.IntRange(1, 2).Draw(t, "host"), rapid.IntRange(0, 3).Draw(t, "port"))
		})
		want := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Check {
			return check(rapid.SampledFrom([]string{"a/a", "a/b", "b/a"}).Draw(t, "service"), rapid.Int64Range(0, 2).Draw(t, "created"),
				uint32(rapid.IntRange(0, 2).Draw(t, "endpoints")), rapid.SliceOfN(address, 1, 3).Draw(t, "addresses")...)
		}), 0, 6).Draw(t, "checks")
		first := plan(want)
		random := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		shuffled := slices.Clone(want)
		random.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
		if diff := cmp.Diff(planText(first), planText(plan(shuffled))); diff != "" {
			t.Fatalf("another order, another plan (-want +got):\n%s", diff)
		}
		// Every claim either owns its address or is refused because another claim owns it.
		for i := range want {
			for _, text := range want[i].Health.GetListenAddresses() {
				owner := first.owners[netip.MustParseAddrPort(text)]
				problem, refused := first.refused[claim{want[i].Service, text}]
				if owner == nil || (owner.Service == want[i].Service) == refused {
					t.Fatalf("%s at %s: owner %v, refused %t", want[i].Service, text, owner, refused)
				}
				if refused && (!errors.Is(problem.Err, ErrContested) || !strings.HasSuffix(problem.Err.Error(), owner.Service)) {
					t.Fatalf("%s at %s: %v", want[i].Service, text, problem.Err)
				}
			}
		}
	})
}

func TestChecksOfAView(t *testing.T) {
	v4, v6 := &messages.HealthCheck{Port: 30000, LocalEndpoints: 1}, &messages.HealthCheck{Port: 30000}
	view := &messages.ServiceView{Key: "a/b", Uid: "u", Created: 7, HealthChecks: []*messages.HealthCheck{v4, v6}}
	got := Checks(view)
	want := []Check{{"a/b", "u", 7, v4}, {"a/b", "u", 7, v6}}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if got := Checks(nil); got != nil {
		t.Errorf("of no view: %v", got)
	}
}
