package allocator

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"

	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/troupe-vpp/troupe/kube/addresses"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// town is an API server: objects with versions, of which a leader may see older ones.
type town struct {
	*testing.T
	random   *rand.Rand
	version  int
	services map[string]*corev1.Service
	pools    map[string]*addresses.AddressPool
	seen     seen // by the leader
	sent     map[string]*unseen
	now      time.Time
	flying   []write // without an answer: they may arrive later
}

func (o *town) next() string {
	o.version++
	return fmt.Sprint(o.version)
}

// put stores an object of the user.
func (o *town) put(s *corev1.Service) {
	s.ResourceVersion = o.next()
	o.services[keyOf(s)] = s
}

// look lets the leader see the objects as they are now.
func (o *town) look() {
	o.seen = seen{namespaces: map[string]labels.Set{"default": {}}}
	for _, s := range o.services {
		o.seen.services = append(o.seen.services, s)
	}
	for _, p := range o.pools {
		o.seen.pools = append(o.seen.pools, p)
	}
}

// make carries out a write as the API server does.
func (o *town) make(w write) {
	patch, err := w.patch()
	if err != nil {
		o.Fatal(err)
	}
	var status corev1.Service
	if err := json.Unmarshal(patch, &status); err != nil {
		o.Fatal(err)
	}
	s := o.services[w.key]
	if s == nil || status.ResourceVersion != "" && s.ResourceVersion != status.ResourceVersion {
		return // pools are not written here
	}
	s = s.DeepCopy()
	s.Status, s.ResourceVersion = status.Status, o.next()
	o.services[w.key] = s
	o.once()
}

// once checks that the API server has no address twice.
func (o *town) once() {
	users := map[netip.Addr]*corev1.Service{}
	for _, s := range o.services {
		for _, at := range inStatus(s) {
			if other := users[at]; other != nil {
				o.Fatalf("%s and %s have %s", keyOf(other), keyOf(s), at)
			}
			users[at] = s
		}
	}
}

// round is one round of the leader. Some writes have no answer, and arrive at once, later or never.
func (o *town) round() {
	o.now = o.now.Add(time.Minute)
	versions := map[string]string{}
	for _, s := range o.seen.services {
		versions[keyOf(s)] = s.ResourceVersion
	}
	forget(o.sent, versions)
	writes := plan(&o.seen, o.sent, &Config{}, o.now).writes
	o.random.Shuffle(len(writes), func(i, j int) { writes[i], writes[j] = writes[j], writes[i] })
	for i := range writes {
		u := sending(o.sent, &writes[i])
		switch o.random.IntN(8) {
		case 0: // lost
		case 1:
			o.flying = append(o.flying, writes[i])
		case 2: // the answer is lost
			o.make(writes[i])
		case 3: // the leader sees what has happened meanwhile only later
			return
		default:
			o.make(writes[i])
			u.answered = true
		}
	}
}

// TestNothingTwiceAfterCrashes: whatever is lost, delayed or seen late, and whenever the leader
// changes, no address is in two statuses at any time; in the end every Service has what it should.
func TestNothingTwiceAfterCrashes(t *testing.T) {
	for seed := range uint64(300) {
		o := &town{T: t, random: rand.New(rand.NewPCG(seed, 1)), services: map[string]*corev1.Service{}, pools: map[string]*addresses.AddressPool{}, sent: map[string]*unseen{}}
		o.pools["p"] = &addresses.AddressPool{ObjectMeta: metav1.ObjectMeta{Name: "p", ResourceVersion: "p"}, Spec: addresses.AddressPoolSpec{Addresses: []string{"192.0.2.0/29"}}}
		o.look()
		for range 200 {
			name := fmt.Sprint("s", o.random.IntN(8))
			switch o.random.IntN(7) {
			case 0:
				delete(o.services, "default/"+name)
			case 1:
				s := service(name, func(s *corev1.Service) {
					if o.random.IntN(3) == 0 {
						s.Annotations[addresses.AddressesAnnotation] = fmt.Sprint("192.0.2.", o.random.IntN(8))
					}
				})
				if old := o.services[keyOf(s)]; old != nil {
					s.Status, s.CreationTimestamp = old.Status, old.CreationTimestamp
				} else {
					s.CreationTimestamp = metav1.Unix(int64(o.random.IntN(5)), 0)
				}
				o.put(s)
			case 2:
				if i := len(o.flying); i > 0 { // it arrives late
					o.make(o.flying[i-1])
					o.flying = o.flying[:i-1]
				}
			case 3: // a new leader, once the writes of the last one have arrived or have ended
				o.sent, o.flying = map[string]*unseen{}, nil
				o.look()
			case 4:
				o.look()
			default:
				o.round()
			}
		}
		for range 10 {
			o.flying = nil
			o.look()
			o.random = rand.New(quiet{})
			o.round()
		}
		for _, s := range o.services {
			if len(inStatus(s)) != 1 && s.Annotations[addresses.AddressesAnnotation] == "" {
				t.Fatalf("seed %d: %s has %v: %v", seed, keyOf(s), inStatus(s), s.Status.Conditions)
			}
		}
	}
}

// quiet makes nothing go wrong.
type quiet struct{}

func (quiet) Uint64() uint64 { return 1<<64 - 1 }

func service(name string, change ...func(*corev1.Service)) *corev1.Service {
	s := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Annotations: map[string]string{}, ResourceVersion: "1"},
		Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeLoadBalancer, LoadBalancerClass: new(addresses.Class), IPFamilies: []corev1.IPFamily{corev1.IPv4Protocol}, Ports: []corev1.ServicePort{{Port: 80}},
		},
	}
	for _, c := range change {
		c(s)
	}
	return s
}

// BenchmarkPlan: 10,000 Services that have what they should.
func BenchmarkPlan(b *testing.B) {
	s := &seen{namespaces: map[string]labels.Set{"default": {}}, pools: []*addresses.AddressPool{{
		ObjectMeta: metav1.ObjectMeta{Name: "p", ResourceVersion: "1"}, Spec: addresses.AddressPoolSpec{Addresses: []string{"10.0.0.0/18"}},
	}}}
	for i := range 10_000 {
		s.services = append(s.services, service(fmt.Sprint("s", i)))
	}
	for _, w := range plan(s, map[string]*unseen{}, &Config{}, time.Now()).writes {
		for _, one := range s.services {
			if keyOf(one) == w.key {
				one.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: w.addresses[0].String()}}
			}
		}
	}
	for b.Loop() {
		plan(s, map[string]*unseen{}, &Config{}, time.Now())
	}
}
