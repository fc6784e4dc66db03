package nat44

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/troupe-vpp/troupe/vpp/acl"
	"github.com/troupe-vpp/troupe/vpp/rule"
)

// asking makes plans of services that need so many rules.
func asking(needs ...any) (plans []*acl.ServicePlan) {
	for i := 0; i < len(needs); i += 2 {
		plans = append(plans, &acl.ServicePlan{Plan: rule.Plan{Service: needs[i].(string)}, Needs: needs[i+1].(int)})
	}
	return plans
}

// names are the services of plans.
func names(plans []*acl.ServicePlan) (all []string) {
	for _, p := range plans {
		all = append(all, p.Service)
	}
	return all
}

func TestFit(t *testing.T) {
	const most = acl.MaxServiceRules
	for _, c := range []struct {
		name  string
		plans []*acl.ServicePlan
		want  []string // services with room
	}{
		{"nothing", nil, nil},
		{"one namespace has all the room", asking("a/1", most, "a/2", most, "a/3", most, "a/4", most, "a/5", 1), []string{"a/1", "a/2", "a/3", "a/4"}},
		{"more than a service may have", asking("a/1", most+1, "a/2", 1), []string{"a/2"}},
		{"what is too large takes no room", asking("a/1", most+1, "b/1", most, "b/2", most, "b/3", most, "b/4", most), []string{"b/1", "b/2", "b/3", "b/4"}},
		{
			"an older namespace does not take the share of a younger one", asking("a/1", most, "a/2", most, "a/3", most, "a/4", most, "b/1", most, "b/2", most),
			[]string{"a/1", "a/2", "b/1", "b/2"},
		},
		{
			"a small namespace has all that it asks for", asking("a/1", most, "a/2", most, "a/3", most, "a/4", most, "b/1", 10),
			[]string{"a/1", "a/2", "a/3", "b/1"},
		},
		{
			"what does not fit leaves room for what does", asking("a/1", most, "a/2", most-10, "a/3", 20, "a/4", 10, "b/1", most, "b/2", most),
			[]string{"a/1", "a/2", "a/4", "b/1", "b/2"},
		},
		{"names without a namespace", asking("1", 1, "2", 1), []string{"1", "2"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			fitting, refused := fit(c.plans, false)
			if got := names(fitting); !slices.Equal(got, c.want) || len(fitting)+len(refused) != len(c.plans) {
				t.Errorf("%v have room, want %v; %d are refused", got, c.want, len(refused))
			}
		})
	}
}

// TestRefusalsSayWhy: of source ranges by their field.
func TestRefusalsSayWhy(t *testing.T) {
	plans := asking("a/1", acl.MaxServiceRules+1, "a/2", acl.MaxServiceRules, "b/1", acl.MaxServiceRules, "a/3", acl.MaxServiceRules, "b/2", acl.MaxServiceRules, "a/4", 7)
	plans[0].Ranged = append(plans[0].Ranged, rule.Key{Port: 80})
	_, refused := fit(plans, false)
	var texts []string
	for _, e := range refused {
		texts = append(texts, fmt.Sprintf("%s %s: %s", e.GetObject(), e.GetField(), e.GetMessage()))
	}
	want := []string{
		"a/1 spec.loadBalancerSourceRanges: more than 4096 rules are needed to drop other clients; use fewer or larger ranges",
		"a/4 spec: no room for 7 rules: older services take the share of namespace a of the 16384 that a node may have",
	}
	if !slices.Equal(texts, want) {
		t.Errorf("%q, want %q", texts, want)
	}
}

// TestFitIsFair: the rules fit, a namespace that needs no more than an equal share has all that it
// needs.
func TestFitIsFair(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var plans []*acl.ServicePlan
		needs, has := map[string]int{}, map[string]int{}
		for i := range rapid.IntRange(0, 40).Draw(t, "services") {
			namespace := rapid.StringMatching("[a-e]").Draw(t, "namespace")
			n := rapid.OneOf(rapid.IntRange(0, 9), rapid.IntRange(0, acl.MaxServiceRules)).Draw(t, "needs")
			plan := &acl.ServicePlan{Plan: rule.Plan{Service: fmt.Sprint(namespace, "/", i)}, Needs: n}
			plans = append(plans, plan)
			needs[namespace] += plan.Needs
		}
		fitting, _ := fit(plans, false)
		sum := 0
		for _, p := range fitting {
			namespace, _, _ := strings.Cut(p.Service, "/")
			has[namespace] += p.Needs
			sum += p.Needs
		}
		if sum > acl.MaxRules {
			t.Fatalf("%d rules", sum)
		}
		for namespace, n := range needs {
			if n <= acl.MaxRules/len(needs) && has[namespace] != n {
				t.Fatalf("%s needs %d and has %d: %v", namespace, n, has[namespace], needs)
			}
		}
		if slices.Max(append(slices.Collect(maps.Values(has)), 0)) > acl.MaxRules {
			t.Fatal(has)
		}
	})
}
