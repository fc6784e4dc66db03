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
	p := Pool{Name: name, First: 1, Last: 255}
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
	few := pool(t, "few", "10.0.0.0-10.0.0.5") // groups of two
	few.OnRequest, few.First, few.Last = true, 100, 102
	broken := Pool{Name: "broken", Wrong: ErrPool}
	closed := pool(t, "closed", "10.9.0.0/24")
	closed.Wrong = ErrPool
	pools := []Pool{pool(t, "common", "192.0.2.1-192.0.2.3", "2001:db8::1-2001:db8::2"), gold, shop, few}
	taken := map[netip.Addr]string{netip.MustParseAddr("203.0.113.9"): "it is in the status of Service x"}
	for name, tt := range map[string]struct {
		services []Service
		want     string
		more     []Pool
	}{
		"the lowest free addresses, in the order of age": {
			services: []Service{{Key: "a", Created: 2, IPv4: true}, {Key: "b", Created: 1, IPv4: true, IPv6: true}}, want: "a 192.0.2.2, b 192.0.2.1 2001:db8::1",
		},
		"each keeps what it has": {
			services: []Service{{Key: "a", Created: 2, IPv4: true, Has: addrs("192.0.2.1")}, {Key: "b", Created: 1, IPv4: true}}, want: "a 192.0.2.1, b 192.0.2.2",
		},
		"the older one keeps a common address": {
			services: []Service{{Key: "a", Created: 2, IPv4: true, Has: addrs("192.0.2.1")}, {Key: "b", Created: 1, IPv4: true, Has: addrs("192.0.2.1")}}, want: "a 192.0.2.2, b 192.0.2.1",
		},
		"an address outside of the pools goes": {services: []Service{{Key: "a", IPv4: true, Has: addrs("192.0.2.9")}}, want: "a 192.0.2.1"},
		"an address of another family goes":    {services: []Service{{Key: "a", IPv6: true, Has: addrs("192.0.2.1")}}, want: "a 2001:db8::1"},
		"an address that it asks for":          {services: []Service{{Key: "a", IPv4: true, Wanted: addrs("203.0.113.7"), Has: addrs("192.0.2.1")}}, want: "a 203.0.113.7"},
		"an address that the pool avoids":      {services: []Service{{Key: "a", IPv4: true, Wanted: addrs("203.0.113.0")}}, want: "a it asks for 203.0.113.0: no pool has it"},
		"a pool that it asks for, without .0":  {services: []Service{{Key: "a", IPv4: true, Pool: "gold"}}, want: "a 203.0.113.1"},
		"a pool that does not select it":       {services: []Service{{Key: "a", IPv4: true, Pool: "shop"}}, want: "a no pool gives an IPv4 address (common: the Service asks for another pool; few: the Service asks for another pool; gold: the Service asks for another pool; shop: the pool does not select its namespace)"},
		"a pool that selects its namespace":    {services: []Service{{Key: "a", IPv4: true, Pool: "shop", Namespace: labels.Set{"team": "shop"}}}, want: "a 198.51.100.1"},
		"a held address that another asks for": {services: []Service{{Key: "a", Created: 1, IPv4: true, Wanted: addrs("192.0.2.2")}, {Key: "b", Created: 2, IPv4: true, Has: addrs("192.0.2.2")}}, want: "a it asks for 192.0.2.2: Service b has it, b 192.0.2.2"},
		"two share an address":                 {services: []Service{{Key: "a", IPv4: true, Share: "x", Ports: web}, {Key: "b", IPv4: true, Share: "x", Ports: dns}}, want: "a 192.0.2.1, b 192.0.2.1"},
		"two with the same port do not":        {services: []Service{{Key: "a", IPv4: true, Share: "x", Ports: web}, {Key: "b", IPv4: true, Share: "x", Ports: web}}, want: "a 192.0.2.1, b 192.0.2.2"},
		"one of them is Local":                 {services: []Service{{Key: "a", IPv4: true, Share: "x", Ports: web}, {Key: "b", IPv4: true, Share: "x", Ports: dns, Local: true}}, want: "a 192.0.2.1, b 192.0.2.2"},
		"other keys":                           {services: []Service{{Key: "a", IPv4: true, Share: "x", Ports: web}, {Key: "b", IPv4: true, Share: "y", Ports: dns}}, want: "a 192.0.2.1, b 192.0.2.2"},
		"one asks for the shared one":          {services: []Service{{Key: "a", IPv4: true, Share: "x", Ports: web}, {Key: "b", IPv4: true, Share: "x", Ports: web, Wanted: addrs("192.0.2.1")}}, want: "a 192.0.2.2, b 192.0.2.1"},
		"no address is left":                   {services: []Service{{Key: "a", IPv6: true}, {Key: "b", IPv6: true}, {Key: "c", IPv6: true}}, want: "a 2001:db8::1, b 2001:db8::2, c no pool gives an IPv6 address (common: it has no free address)"},
		"Local ones are alone in their group": {
			services: []Service{{Key: "a", IPv4: true, Pool: "few"}, {Key: "b", IPv4: true, Pool: "few", Local: true}, {Key: "c", IPv4: true, Pool: "few", Local: true}, {Key: "d", IPv4: true, Pool: "few"}, {Key: "e", IPv4: true, Pool: "few", Local: true}, {Key: "f", IPv4: true, Pool: "few"}},
			want:     "a 10.0.0.0, b 10.0.0.2, c 10.0.0.4, d 10.0.0.1, e no pool gives an IPv4 address (common: the Service asks for another pool; few: no virtual router is free, and a Local Service needs one for itself; gold: the Service asks for another pool; shop: the Service asks for another pool), f no pool gives an IPv4 address (common: the Service asks for another pool; few: it has no free address; gold: the Service asks for another pool; shop: the Service asks for another pool)",
		},
		"a Local one asks for an address in the group of another": {
			services: []Service{{Key: "a", IPv4: true, Has: addrs("10.0.0.0"), Pool: "few"}, {Key: "b", IPv4: true, Wanted: addrs("10.0.0.1"), Local: true}},
			want:     "a 10.0.0.0, b it asks for 10.0.0.1: virtual router 100 is not free for a Local Service: a has an address of it",
		},
		"another one asks for an address in the group of a Local one": {
			services: []Service{{Key: "a", IPv4: true, Has: addrs("10.0.0.0"), Pool: "few", Local: true}, {Key: "b", IPv4: true, Wanted: addrs("10.0.0.1")}},
			want:     "a 10.0.0.0, b it asks for 10.0.0.1: virtual router 100 belongs to the Local Service a",
		},
		"one that becomes Local keeps its address": {
			services: []Service{{Key: "a", IPv4: true, Has: addrs("10.0.0.0"), Pool: "few"}, {Key: "b", IPv4: true, Has: addrs("10.0.0.1"), Pool: "few", Local: true}},
			want:     "a 10.0.0.0, b 10.0.0.1 beside others",
		},
		"an address that another user has": {services: []Service{{Key: "a", IPv4: true, Wanted: addrs("203.0.113.9")}}, want: "a it asks for 203.0.113.9: it is in the status of Service x"},
		"it was given before":              {services: []Service{{Key: "a", IPv4: true, Has: addrs("203.0.113.9"), Pool: "gold"}}, want: "a 203.0.113.9"},
		"one that waits keeps what it has": {
			services: []Service{{Key: "a", IPv4: true, IPv6: true, Has: addrs("192.0.2.2"), Waits: "its Namespace is not known"}}, want: "a 192.0.2.2 its Namespace is not known",
		},
		"a refused pool takes nothing away and gives nothing": {
			services: []Service{{Key: "a", IPv4: true, Has: addrs("10.9.0.7"), Pool: "closed"}, {Key: "b", IPv4: true, Has: addrs("10.8.0.7")}, {Key: "c", IPv4: true, Pool: "closed"}},
			want:     "a 10.9.0.7, b 192.0.2.1, c no pool gives an IPv4 address (closed: the pool is refused; common: the Service asks for another pool; few: the Service asks for another pool; gold: the Service asks for another pool; shop: the Service asks for another pool)",
			more:     []Pool{closed},
		},
		"a pool that cannot be read may have any address": {services: []Service{{Key: "b", IPv4: true, Has: addrs("10.8.0.7")}}, want: "b 10.8.0.7", more: []Pool{broken}},
	} {
		t.Run(name, func(t *testing.T) {
			given, _ := Allocate(slices.Concat(pools, tt.more), tt.services, taken)
			var texts []string
			for _, g := range given {
				text := g.Key
				for _, at := range g.Addresses {
					text += " " + at.String()
				}
				if len(g.Beside) > 0 {
					text += " beside others"
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
	nodes := map[netip.Addr]string{netip.MustParseAddr("198.51.100.7"): "n1"}
	of := func(p Pool, first, last uint8) Pool {
		p.First, p.Last = first, last
		return p
	}
	for name, tt := range map[string]struct {
		pools []Pool
		want  string
	}{
		"apart":                                {[]Pool{of(pool(t, "a", "192.0.2.0/28"), 1, 9), of(pool(t, "b", "192.0.2.16/28", "2001:db8::/64"), 10, 20)}, "map[]"},
		"two pools":                            {[]Pool{pool(t, "b", "192.0.2.0/24"), pool(t, "a", "192.0.2.9-192.0.2.9")}, "map[b:invalid address pool b: range 192.0.2.0-192.0.2.255 overlaps range 192.0.2.9-192.0.2.9 of pool a]"},
		"a wrong one":                          {[]Pool{pool(t, "a", "10.96.1.0/24", "192.0.2.0/24"), pool(t, "b", "192.0.2.0/24")}, "map[a:invalid address pool a: range 10.96.1.0-10.96.1.255 overlaps network 10.96.0.0/16 of the cluster]"},
		"itself":                               {[]Pool{pool(t, "a", "192.0.2.0/24", "192.0.2.1-192.0.2.2")}, "map[a:invalid address pool a: range 192.0.2.1-192.0.2.2 overlaps range 192.0.2.0-192.0.2.255 of pool a]"},
		"the network of IPv6":                  {[]Pool{pool(t, "a", "fd00::9-fd00:0:0:1::")}, "map[a:invalid address pool a: range fd00::9-fd00:0:0:1:: overlaps network fd00::/64 of the cluster]"},
		"a node in it":                         {[]Pool{pool(t, "a", "198.51.100.0/28")}, "map[a:invalid address pool a: range 198.51.100.0-198.51.100.15 overlaps address 198.51.100.7 of Node n1]"},
		"the same virtual routers":             {[]Pool{of(pool(t, "a", "192.0.2.0/28"), 1, 9), of(pool(t, "b", "192.0.2.16/28"), 9, 20)}, "map[b:invalid address pool b: virtual routers 9-20 overlap those of pool a, 1-9: divide 1-255 among the pools]"},
		"the same ones of the other family":    {[]Pool{pool(t, "a", "192.0.2.0/28"), pool(t, "b", "2001:db8::/64")}, "map[]"},
		"those of a pool that is wrong before": {[]Pool{pool(t, "a", "10.96.0.0/24"), pool(t, "b", "192.0.2.0/24")}, "map[a:invalid address pool a: range 10.96.0.0-10.96.0.255 overlaps network 10.96.0.0/16 of the cluster]"},
		"nothing in it":                        {[]Pool{{Name: "a"}}, "map[a:invalid address pool a: it has no ranges]"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := fmt.Sprint(Check(tt.pools, networks, nodes)); got != tt.want {
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
		if !r.contains(r.First) || !r.contains(r.Last) {
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
	for i := range every { // 5 and 3 groups of several addresses, and one for each address
		every[i].First, every[i].Last = []uint8{1, 10, 20}[i], []uint8{5, 12, 99}[i]
	}
	every[2].Services = labels.SelectorFromSet(labels.Set{"c": "yes"})
	layouts := map[string]*Layout{}
	for i := range every {
		layouts[every[i].Name] = every[i].Lay()
	}
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
		given, _ := Allocate(pools, list, nil)
		if n%20 == 0 {
			again, _ := Allocate(slices.Clone(pools), shuffled(random, list), nil)
			if fmt.Sprint(given) != fmt.Sprint(again) {
				t.Fatalf("change %d: the order of Services matters:\n%v\n%v", n, given, again)
			}
		}
		if changed != "pools" {
			stays(t, services, given, changed)
		}
		once(t, pools, layouts, services, given)
		alone(t, layouts, services, given)
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
func once(t *testing.T, pools []Pool, layouts map[string]*Layout, services map[string]*Service, given []Given) {
	t.Helper()
	of := map[netip.Addr][]*Service{}
	for _, g := range given {
		s := services[g.Key]
		families := map[bool]int{}
		for _, at := range g.Addresses {
			families[at.Is4()]++
			of[at] = append(of[at], s)
			if !slices.ContainsFunc(pools, func(p Pool) bool { return has(layouts[p.Name], at) && p.refuses(s) == "" }) {
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

func has(l *Layout, at netip.Addr) bool {
	_, has := l.Group(at)
	return has
}

// alone checks that a Local Service shares its virtual router only with Services that had addresses
// of it before, and says so.
func alone(t *testing.T, layouts map[string]*Layout, services map[string]*Service, given []Given) {
	t.Helper()
	groups := map[Group][]string{}
	group := func(at netip.Addr) (g Group) {
		for _, l := range layouts {
			if one, has := l.Group(at); has {
				g = one
			}
		}
		return g
	}
	for _, g := range given {
		for _, at := range g.Addresses {
			groups[group(at)] = append(groups[group(at)], g.Key)
		}
	}
	for _, g := range given {
		for _, at := range g.Addresses {
			s, beside := services[g.Key], len(groups[group(at)]) > 1
			if s.Local && beside != slices.Contains(g.Beside, at) {
				t.Errorf("%s has %s of group %s with %v, and says %v", g.Key, at, group(at), groups[group(at)], g.Beside)
			}
			if s.Local && beside && !slices.Contains(s.Has, at) {
				t.Errorf("%s got %s of group %s with %v", g.Key, at, group(at), groups[group(at)])
			}
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
		Allocate(pools, services, nil)
	}
}
