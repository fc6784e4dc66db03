package addresses

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/labels"
)

func pool(t testing.TB, name string, ranges ...string) Pool {
	t.Helper()
	p := Pool{Name: name}
	for _, text := range ranges {
		r, err := ParseRange(text)
		if err != nil {
			t.Fatal(err)
		}
		p.Ranges = append(p.Ranges, r)
	}
	return p
}

func addrs(texts ...string) (all []netip.Addr) {
	for _, text := range texts {
		all = append(all, netip.MustParseAddr(text))
	}
	return all
}

// TestAllocate: Services and their addresses before => addresses after, or why there is none.
func TestAllocate(t *testing.T) {
	web, dns := []Port{{"TCP", 80}}, []Port{{"UDP", 53}}
	gold := pool(t, "gold", "203.0.113.0-203.0.113.9")
	gold.OnRequest, gold.Avoid = true, []byte{0}
	shop := pool(t, "shop", "198.51.100.1-198.51.100.1")
	shop.Namespaces = labels.SelectorFromSet(labels.Set{"team": "shop"})
	pools := []Pool{pool(t, "common", "192.0.2.1-192.0.2.3", "2001:db8::1-2001:db8::2"), gold, shop}
	for name, tt := range map[string]struct {
		services []Service
		want     string
	}{
		"the lowest free addresses, in the order of age": {
			[]Service{{Key: "a", Created: 2, IPv4: true}, {Key: "b", Created: 1, IPv4: true, IPv6: true}}, "a 192.0.2.2, b 192.0.2.1 2001:db8::1",
		},
		"each keeps what it has": {
			[]Service{{Key: "a", Created: 2, IPv4: true, Has: addrs("192.0.2.1")}, {Key: "b", Created: 1, IPv4: true}}, "a 192.0.2.1, b 192.0.2.2",
		},
		"the older one keeps a common address": {
			[]Service{{Key: "a", Created: 2, IPv4: true, Has: addrs("192.0.2.1")}, {Key: "b", Created: 1, IPv4: true, Has: addrs("192.0.2.1")}}, "a 192.0.2.2, b 192.0.2.1",
		},
		"an address outside of the pools goes": {[]Service{{Key: "a", IPv4: true, Has: addrs("192.0.2.9")}}, "a 192.0.2.1"},
		"an address of another family goes":    {[]Service{{Key: "a", IPv6: true, Has: addrs("192.0.2.1")}}, "a 2001:db8::1"},
		"an address that it asks for":          {[]Service{{Key: "a", IPv4: true, Wanted: addrs("203.0.113.7"), Has: addrs("192.0.2.1")}}, "a 203.0.113.7"},
		"an address that the pool avoids":      {[]Service{{Key: "a", IPv4: true, Wanted: addrs("203.0.113.0")}}, "a it asks for 203.0.113.0: no pool has it"},
		"a pool that it asks for, without .0":  {[]Service{{Key: "a", IPv4: true, Pool: "gold"}}, "a 203.0.113.1"},
		"a pool that does not select it":       {[]Service{{Key: "a", IPv4: true, Pool: "shop"}}, "a no pool gives an IPv4 address (common: the Service asks for another pool; gold: the Service asks for another pool; shop: the pool does not select its namespace)"},
		"a pool that selects its namespace":    {[]Service{{Key: "a", IPv4: true, Pool: "shop", Namespace: labels.Set{"team": "shop"}}}, "a 198.51.100.1"},
		"a held address that another asks for": {[]Service{{Key: "a", Created: 1, IPv4: true, Wanted: addrs("192.0.2.2")}, {Key: "b", Created: 2, IPv4: true, Has: addrs("192.0.2.2")}}, "a it asks for 192.0.2.2: Service b has it, b 192.0.2.2"},
		"two share an address":                 {[]Service{{Key: "a", IPv4: true, Share: "x", Ports: web}, {Key: "b", IPv4: true, Share: "x", Ports: dns}}, "a 192.0.2.1, b 192.0.2.1"},
		"two with the same port do not":        {[]Service{{Key: "a", IPv4: true, Share: "x", Ports: web}, {Key: "b", IPv4: true, Share: "x", Ports: web}}, "a 192.0.2.1, b 192.0.2.2"},
		"one of them is Local":                 {[]Service{{Key: "a", IPv4: true, Share: "x", Ports: web}, {Key: "b", IPv4: true, Share: "x", Ports: dns, Local: true}}, "a 192.0.2.1, b 192.0.2.2"},
		"other keys":                           {[]Service{{Key: "a", IPv4: true, Share: "x", Ports: web}, {Key: "b", IPv4: true, Share: "y", Ports: dns}}, "a 192.0.2.1, b 192.0.2.2"},
		"one asks for the shared one":          {[]Service{{Key: "a", IPv4: true, Share: "x", Ports: web}, {Key: "b", IPv4: true, Share: "x", Ports: web, Wanted: addrs("192.0.2.1")}}, "a 192.0.2.2, b 192.0.2.1"},
		"no address is left":                   {[]Service{{Key: "a", IPv6: true}, {Key: "b", IPv6: true}, {Key: "c", IPv6: true}}, "a 2001:db8::1, b 2001:db8::2, c no pool gives an IPv6 address (common: it has no free address)"},
	} {
		t.Run(name, func(t *testing.T) {
			given, _ := Allocate(pools, tt.services)
			var texts []string
			for _, g := range given {
				text := g.Key
				for _, at := range g.Addresses {
					text += " " + at.String()
				}
				texts = append(texts, strings.TrimSpace(text+" "+strings.Join(g.Why, "; ")))
			}
			if got := strings.Join(texts, ", "); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

// TestCheck: pools that overlap each other or the networks of the cluster give nothing.
func TestCheck(t *testing.T) {
	networks := []netip.Prefix{netip.MustParsePrefix("10.96.0.0/16"), netip.MustParsePrefix("fd00::/64")}
	for name, tt := range map[string]struct {
		pools []Pool
		want  string
	}{
		"apart":               {[]Pool{pool(t, "a", "192.0.2.0/28"), pool(t, "b", "192.0.2.16/28", "2001:db8::/64")}, "map[]"},
		"two pools":           {[]Pool{pool(t, "b", "192.0.2.0/24"), pool(t, "a", "192.0.2.9-192.0.2.9")}, "map[b:invalid address pool b: range 192.0.2.0-192.0.2.255 overlaps range 192.0.2.9-192.0.2.9 of pool a]"},
		"a wrong one":         {[]Pool{pool(t, "a", "10.96.1.0/24", "192.0.2.0/24"), pool(t, "b", "192.0.2.0/24")}, "map[a:invalid address pool a: range 10.96.1.0-10.96.1.255 overlaps network 10.96.0.0/16 of the cluster]"},
		"itself":              {[]Pool{pool(t, "a", "192.0.2.0/24", "192.0.2.1-192.0.2.2")}, "map[a:invalid address pool a: range 192.0.2.1-192.0.2.2 overlaps range 192.0.2.0-192.0.2.255 of pool a]"},
		"the network of IPv6": {[]Pool{pool(t, "a", "fd00::9-fd00:0:0:1::")}, "map[a:invalid address pool a: range fd00::9-fd00:0:0:1:: overlaps network fd00::/64 of the cluster]"},
		"nothing in it":       {[]Pool{{Name: "a"}}, "map[a:invalid address pool a: it has no ranges]"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := fmt.Sprint(Check(tt.pools, networks)); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

func FuzzParseRange(f *testing.F) {
	for _, seed := range []string{"192.0.2.0/24", "192.0.2.1-192.0.2.9", "2001:db8::/64", "::-::ffff", "192.0.2.9-192.0.2.1", "fe80::1%eth0-fe80::2%eth0", "192.0.2.1/24", "::ffff:192.0.2.1-192.0.2.9", ""} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		r, err := ParseRange(text)
		if err != nil {
			return
		}
		if !r.contains(r.First) || !r.contains(r.Last) || r.size() == 0 {
			t.Errorf("%q is %v", text, r)
		}
		if again, err := ParseRange(r.String()); err != nil || again != r {
			t.Errorf("%v again: %v, %v", r, again, err)
		}
	})
}

// TestNothingIsGivenTwice: after each of many random changes, no address is given twice but to
// Services that may share it, every address is of a pool that may give it, and a Service keeps its
// address while nothing about it has changed.
func TestNothingIsGivenTwice(t *testing.T) {
	const changes = 100_000
	random := rand.New(rand.NewPCG(1, 2))
	every := []Pool{pool(t, "a", "192.0.2.0/28", "2001:db8::/125"), pool(t, "b", "198.51.100.0/29"), pool(t, "c", "203.0.113.0-203.0.113.3", "2001:db8:1::/126")}
	every[1].OnRequest, every[2].Avoid = true, []byte{0}
	every[2].Services = labels.SelectorFromSet(labels.Set{"c": "yes"})
	pools := every
	services := map[string]*Service{}
	for n := range changes {
		key := fmt.Sprint("s", random.IntN(40))
		changed := ""
		switch random.IntN(10) {
		case 0:
			pools = slices.DeleteFunc(slices.Clone(every), func(Pool) bool { return random.IntN(6) == 0 })
			changed = "pools"
		case 1, 2:
			delete(services, key)
			changed = key
		default:
			changed = key
			s := Service{Key: key, Created: int64(random.IntN(5)), IPv4: random.IntN(4) > 0, IPv6: random.IntN(2) > 0, Local: random.IntN(4) == 0}
			if random.IntN(3) == 0 {
				s.Share = fmt.Sprint(random.IntN(2))
			}
			if random.IntN(4) == 0 {
				s.Labels = labels.Set{"c": "yes"}
			}
			s.Pool = []string{"", "", "b", "c"}[random.IntN(4)]
			s.Ports = []Port{{[]string{"TCP", "UDP"}[random.IntN(2)], uint16(80 + random.IntN(3))}}
			if random.IntN(5) == 0 {
				s.Wanted = addrs(fmt.Sprint("192.0.2.", random.IntN(20)))
			}
			if old := services[key]; old != nil {
				s.Has = old.Has
			}
			services[key] = &s
		}
		list := make([]Service, 0, len(services))
		for _, s := range services {
			list = append(list, *s)
		}
		given, _ := Allocate(pools, list)
		again, _ := Allocate(slices.Clone(pools), shuffled(random, list))
		if fmt.Sprint(given) != fmt.Sprint(again) {
			t.Fatalf("change %d: the order of Services matters:\n%v\n%v", n, given, again)
		}
		if changed != "pools" {
			stays(t, services, given, changed)
		}
		once(t, pools, services, given)
		for _, g := range given {
			services[g.Key].Has = g.Addresses
		}
		if t.Failed() {
			t.Fatalf("change %d, of %s", n, changed)
		}
	}
}

func shuffled(random *rand.Rand, list []Service) []Service {
	list = slices.Clone(list)
	random.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	return list
}

// stays checks that Services keep what they have, unless they changed, or share it with one that
// changed.
func stays(t *testing.T, services map[string]*Service, given []Given, changed string) {
	t.Helper()
	for _, g := range given {
		s := services[g.Key]
		if g.Key == changed || s.Share != "" {
			continue
		}
		for _, at := range s.Has {
			if !slices.Contains(g.Addresses, at) {
				t.Errorf("%s lost %s", g.Key, at)
			}
		}
	}
}

// once checks who has an address, and from where.
func once(t *testing.T, pools []Pool, services map[string]*Service, given []Given) {
	t.Helper()
	of := map[netip.Addr][]*Service{}
	for _, g := range given {
		s := services[g.Key]
		families := map[bool]int{}
		for _, at := range g.Addresses {
			families[at.Is4()]++
			of[at] = append(of[at], s)
			if !slices.ContainsFunc(pools, func(p Pool) bool { return p.has(at) && p.refuses(s) == "" }) {
				t.Errorf("%s got %s, which no pool gives it", g.Key, at)
			}
		}
		if families[true] > 1 || families[false] > 1 || families[true] > 0 && !s.IPv4 || families[false] > 0 && !s.IPv6 {
			t.Errorf("%s has %v", g.Key, g.Addresses)
		}
		missing := 0
		for is4, wanted := range map[bool]bool{true: s.IPv4, false: s.IPv6} {
			if wanted && families[is4] == 0 {
				missing++
			}
		}
		if missing != len(g.Why) {
			t.Errorf("%s lacks %d addresses, and says %q", g.Key, missing, g.Why)
		}
	}
	for at, all := range of {
		ports := map[Port]bool{}
		for _, s := range all {
			if len(all) > 1 && (s.Share == "" || s.Share != all[0].Share || s.Local || ports[s.Ports[0]]) {
				t.Errorf("%s is given to %s and %s", at, all[0].Key, s.Key)
			}
			ports[s.Ports[0]] = true
		}
	}
}

func BenchmarkAllocate(b *testing.B) {
	pools := []Pool{pool(b, "a", "10.0.0.0/16", "2001:db8::/64")}
	services := make([]Service, 10_000)
	for i := range services {
		services[i] = Service{Key: fmt.Sprint(i), Created: int64(i), IPv4: true, IPv6: true}
	}
	for b.Loop() {
		Allocate(pools, services)
	}
}
