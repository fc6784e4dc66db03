package allocator

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/troupe-vpp/troupe/kube/addresses"
	"github.com/troupe-vpp/troupe/kube/events"
)

// Reasons of the condition of Services.
const (
	reasonGiven     = "Given"
	reasonNoAddress = "NoAddress"
	reasonIgnored   = "Ignored"
	reasonNotAlone  = "LocalNotAlone"
)

// longest is the most characters of an annotation with addresses, and mostMessage of the message of
// a condition.
const (
	longest     = 128
	mostMessage = 1024
)

// seen are the objects of the caches. They are only read.
type seen struct {
	services   []*corev1.Service
	pools      []*addresses.AddressPool
	nodes      []*corev1.Node
	ranges     []*networkingv1.ServiceCIDR
	namespaces map[string]labels.Set
}

// unseen are writes of an object that the cache does not show yet.
type unseen struct {
	// version is that of the object before.
	version string
	// addresses may be in the status of the Service.
	addresses []netip.Addr
	// answered says that the object has another version by now.
	answered bool
	// retry is when a write may be repeated.
	retry time.Time
	tries int
}

// write is a change of the status of a Service or pool.
type write struct {
	key       string // of the object: "namespace/name", or "name" of a pool
	version   string
	addresses []netip.Addr // of a Service
	status    any
	events    []events.Event
}

// patch is the merge patch of the write. The API server refuses it where the object has changed.
func (w *write) patch() ([]byte, error) {
	return json.Marshal(map[string]any{"metadata": map[string]any{"resourceVersion": w.version}, "status": w.status})
}

// round is what is to do.
type round struct {
	writes   []write
	pools    map[string]PoolStatus
	services int // that get addresses from pools
	without  int // that lack an address
	waiting  bool
}

// plan compares what Services have with what they should have.
func plan(s *seen, sent map[string]*unseen, cfg *Config, now time.Time) *round {
	p := &planner{config: cfg, sent: sent, now: now, seen: s, held: map[netip.Addr][]string{}, taken: map[netip.Addr]string{}, odd: map[string]string{}, round: &round{}}
	p.readPools()
	var ours []addresses.Service
	byKey := map[string]*corev1.Service{}
	for _, one := range s.services {
		key := keyOf(one)
		byKey[key] = one
		has := p.has(key, one)
		for _, at := range has {
			p.held[at] = append(p.held[at], key)
		}
		if cfg.ours(one) {
			ours = append(ours, p.service(key, one, has))
			continue
		}
		for _, at := range has {
			p.taken[at] = "it is in the status of Service " + key
		}
	}
	given, usage := addresses.Allocate(p.pools, ours, p.taken)
	p.given = make(map[string][]netip.Addr, len(given))
	for _, g := range given {
		p.given[g.Key] = g.Addresses
	}
	p.round.services = len(given)
	for i := range given {
		p.give(&given[i], byKey[given[i].Key])
	}
	for _, one := range s.services {
		if !cfg.ours(one) && meta.FindStatusCondition(one.Status.Conditions, addresses.AddressesGiven) != nil {
			p.leave(one)
		}
	}
	p.poolStatus(usage)
	return p.round
}

// planner is the state of one plan.
type planner struct {
	*seen
	config *Config
	sent   map[string]*unseen
	now    time.Time
	round  *round

	pools []addresses.Pool
	held  map[netip.Addr][]string // Services whose status has the address, or may have it
	taken map[netip.Addr]string   // addresses with another user
	given map[string][]netip.Addr // of each Service
	odd   map[string]string       // what is wrong with the wishes of Services, which are ignored
}

// readPools reads the pools and says which are wrong.
func (p *planner) readPools() {
	networks, nodes := slices.Concat(p.config.ServiceCIDRs, p.config.PodCIDRs), map[netip.Addr]string{}
	add := func(texts []string) {
		for _, text := range texts {
			if network, err := netip.ParsePrefix(text); err == nil {
				networks = append(networks, network)
			}
		}
	}
	for _, r := range p.ranges {
		add(r.Spec.CIDRs)
	}
	for _, n := range p.nodes {
		add(n.Spec.PodCIDRs)
		for _, a := range n.Status.Addresses {
			if at, err := netip.ParseAddr(a.Address); err == nil {
				nodes[at.Unmap()] = n.Name
			}
		}
	}
	for _, object := range p.seen.pools {
		p.pools = append(p.pools, object.Pool())
	}
	wrong := addresses.Check(p.pools, networks, nodes)
	for i := range p.pools {
		if err := wrong[p.pools[i].Name]; err != nil {
			p.pools[i].Wrong = err
		}
	}
}

// keyOf is "namespace/name".
func keyOf(s *corev1.Service) string { return s.Namespace + "/" + s.Name }

// has are the addresses that the status of a Service has or may have, the last ones first.
func (p *planner) has(key string, s *corev1.Service) (all []netip.Addr) {
	if u := p.sent[key]; u != nil && u.version == s.ResourceVersion {
		all = append(all, u.addresses...)
	}
	for _, at := range inStatus(s) {
		if !slices.Contains(all, at) {
			all = append(all, at)
		}
	}
	return all
}

// inStatus are the addresses in the status of a Service.
func inStatus(s *corev1.Service) (all []netip.Addr) {
	for _, i := range s.Status.LoadBalancer.Ingress {
		if at, err := netip.ParseAddr(i.IP); err == nil {
			all = append(all, at.Unmap())
		}
	}
	return all
}

// ours reports whether a Service gets its addresses from pools.
func (c *Config) ours(s *corev1.Service) bool {
	if s.Spec.Type != corev1.ServiceTypeLoadBalancer {
		return false
	}
	if class := s.Spec.LoadBalancerClass; class != nil {
		return *class == addresses.Class
	}
	return c.DefaultClass
}

// service reads a Service.
func (p *planner) service(key string, s *corev1.Service, has []netip.Addr) addresses.Service {
	out := addresses.Service{
		Key: key, Created: s.CreationTimestamp.Unix(), Labels: s.Labels, Has: has,
		IPv4: slices.Contains(s.Spec.IPFamilies, corev1.IPv4Protocol), IPv6: slices.Contains(s.Spec.IPFamilies, corev1.IPv6Protocol),
		Pool:  s.Annotations[addresses.PoolAnnotation],
		Local: s.Spec.ExternalTrafficPolicy == corev1.ServiceExternalTrafficPolicyLocal,
	}
	if share := s.Annotations[addresses.SharingAnnotation]; share != "" {
		out.Share = s.Namespace + "/" + share // no other tenant gets ports of the address
	}
	for _, port := range s.Spec.Ports {
		out.Ports = append(out.Ports, addresses.Port{Protocol: string(cmp.Or(port.Protocol, corev1.ProtocolTCP)), Port: uint16(port.Port)}) //nolint:gosec // the API server has checked it
	}
	text, where := s.Annotations[addresses.AddressesAnnotation], "annotation "+addresses.AddressesAnnotation
	if text == "" {
		text, where = s.Spec.LoadBalancerIP, "spec.loadBalancerIP"
	}
	if len(text) > longest {
		p.odd[key], text = fmt.Sprintf("%s: it has %d characters, at most %d", where, len(text), longest), ""
	}
	for word := range strings.SplitSeq(text, ",") {
		if word = strings.TrimSpace(word); word == "" {
			continue
		}
		at, err := netip.ParseAddr(word)
		at = at.Unmap()
		switch {
		case err != nil || at.Zone() != "":
			p.odd[key] = fmt.Sprintf("%s: %q is no address", where, word)
		case slices.ContainsFunc(out.Wanted, func(o netip.Addr) bool { return o.Is4() == at.Is4() }):
			p.odd[key] = fmt.Sprintf("%s: %q has several addresses of a family", where, text)
		default:
			out.Wanted = append(out.Wanted, at)
		}
	}
	if out.Waits = p.odd[key]; out.Waits != "" {
		out.Wanted = nil // it keeps what it has
	}
	var known bool
	if out.Namespace, known = p.namespaces[s.Namespace]; !known {
		out.Waits = "the labels of its Namespace are not known yet"
	}
	return out
}

// give writes what a Service has been given, if its status differs.
func (p *planner) give(g *addresses.Given, s *corev1.Service) {
	before, want, late := inStatus(s), slices.Clone(g.Addresses), false
	if len(g.Why) > 0 {
		p.round.without++
	}
	want = slices.DeleteFunc(want, func(at netip.Addr) bool {
		leaving := !slices.Contains(before, at) && slices.ContainsFunc(p.held[at], func(other string) bool {
			return other != g.Key && !slices.Contains(p.given[other], at)
		})
		late = late || leaving
		return leaving
	})
	if len(s.Spec.IPFamilies) > 0 && s.Spec.IPFamilies[0] == corev1.IPv6Protocol {
		slices.Reverse(want)
	}
	condition := metav1.Condition{Type: addresses.AddressesGiven, Status: metav1.ConditionTrue, Reason: reasonGiven}
	switch {
	case len(g.Why) > 0:
		condition.Status, condition.Reason, condition.Message = metav1.ConditionFalse, reasonNoAddress, cut(strings.Join(g.Why, "; "))
	case p.odd[g.Key] != "":
		condition.Reason, condition.Message = reasonIgnored, p.odd[g.Key]
	case len(g.Beside) > 0:
		condition.Reason = reasonNotAlone
		condition.Message = fmt.Sprintf("other Services have addresses of the virtual router of %s: nodes without an endpoint may own it, until the Service is made anew",
			join(g.Beside))
	}
	gone := slices.ContainsFunc(before, func(at netip.Addr) bool { return !slices.Contains(want, at) })
	if late { // a round follows when it is free
		p.round.waiting = true
		if !gone {
			return
		}
		condition.Status, condition.Reason, condition.Message = metav1.ConditionFalse, reasonNoAddress, "its address is in the status of another Service for a moment"
	}
	conditions := slices.Clone(s.Status.Conditions)
	changed := setCondition(&conditions, condition, p.now)
	if !changed && slices.Equal(before, want) && plain(s) {
		return
	}
	w := write{key: g.Key, version: s.ResourceVersion, addresses: want, status: serviceStatus(want, conditions)}
	w.events = happened(s, g.Key, before, want, &condition, changed && !late)
	p.write(w)
}

// leave takes the addresses of pools out of the status of a Service that gets none any more.
func (p *planner) leave(s *corev1.Service) {
	balanced := s.Spec.Type == corev1.ServiceTypeLoadBalancer // by another load balancer
	if balanced && slices.ContainsFunc(p.pools, func(pool addresses.Pool) bool { return len(pool.Ranges) == 0 }) {
		return // a pool that cannot be read
	}
	var rest []netip.Addr
	for _, at := range inStatus(s) {
		pooled := slices.ContainsFunc(p.pools, func(pool addresses.Pool) bool { return pool.Covers(at) })
		if balanced && !pooled {
			rest = append(rest, at)
		}
	}
	conditions := slices.DeleteFunc(slices.Clone(s.Status.Conditions), func(c metav1.Condition) bool { return c.Type == addresses.AddressesGiven })
	status := serviceStatus(nil, conditions)
	status["loadBalancer"].(map[string]any)["ingress"] = slices.DeleteFunc(slices.Clone(s.Status.LoadBalancer.Ingress), func(i corev1.LoadBalancerIngress) bool {
		at, err := netip.ParseAddr(i.IP)
		return err == nil && !slices.Contains(rest, at.Unmap())
	})
	key := keyOf(s)
	p.write(write{key: key, version: s.ResourceVersion, addresses: rest, status: status, events: happened(s, key, inStatus(s), rest, nil, false)})
}

// write enters a write, unless it must wait.
func (p *planner) write(w write) {
	if u := p.sent[w.key]; u != nil && u.version == w.version && (u.answered || p.now.Before(u.retry)) {
		p.round.waiting = true
		return
	}
	p.round.writes = append(p.round.writes, w)
}

// plain reports whether the addresses in the status are as the allocator writes them. Older API
// servers drop the mode.
func plain(s *corev1.Service) bool {
	return !slices.ContainsFunc(s.Status.LoadBalancer.Ingress, func(i corev1.LoadBalancerIngress) bool {
		return i.Hostname != "" || i.IPMode != nil && *i.IPMode != corev1.LoadBalancerIPModeVIP
	})
}

// serviceStatus is the part of the status that the allocator writes.
func serviceStatus(want []netip.Addr, conditions []metav1.Condition) map[string]any {
	ingress := []corev1.LoadBalancerIngress{}
	for _, at := range want {
		ingress = append(ingress, corev1.LoadBalancerIngress{IP: at.String(), IPMode: new(corev1.LoadBalancerIPModeVIP)})
	}
	return map[string]any{"loadBalancer": map[string]any{"ingress": ingress}, "conditions": append([]metav1.Condition{}, conditions...)}
}

// cut makes a message fit into a condition.
func cut(message string) string {
	return strings.ToValidUTF8(message[:min(len(message), mostMessage)], "")
}

// setCondition reports whether it has changed more than a time.
func setCondition(all *[]metav1.Condition, c metav1.Condition, now time.Time) bool {
	c.LastTransitionTime = metav1.NewTime(now)
	return meta.SetStatusCondition(all, c)
}

// happened are the events of a write. They have the reasons of other allocators.
func happened(s *corev1.Service, key string, before, after []netip.Addr, c *metav1.Condition, changed bool) (all []events.Event) {
	event := func(kind, reason, format string, args ...any) {
		all = append(all, events.Event{Object: events.ServiceObject(key, string(s.UID)), Type: kind, Reason: reason, Action: "Allocate", Note: fmt.Sprintf(format, args...)})
	}
	without := func(list, other []netip.Addr) []netip.Addr {
		return slices.DeleteFunc(slices.Clone(list), func(at netip.Addr) bool { return slices.Contains(other, at) })
	}
	if gone := without(before, after); len(gone) > 0 {
		event(events.Normal, events.ReasonClearAssignment, "Released %s", join(gone))
	}
	if got := without(after, before); len(got) > 0 {
		event(events.Normal, events.ReasonIPAllocated, "Assigned %s", join(got))
	}
	if changed && (c.Reason == reasonNoAddress || c.Reason == reasonIgnored) {
		event(events.Warning, events.ReasonAllocationFailed, "Failed to allocate an address for %q: %s", key, c.Message)
	}
	if changed && c.Reason == reasonNotAlone {
		event(events.Warning, events.ReasonLocalNotAlone, "%s", c.Message)
	}
	return all
}

func join(all []netip.Addr) string {
	var texts []string
	for _, at := range all {
		texts = append(texts, at.String())
	}
	return strings.Join(texts, ", ")
}

// poolStatus writes the status of the pools.
func (p *planner) poolStatus(usage map[string]addresses.Usage) {
	p.round.pools = map[string]PoolStatus{}
	for i, object := range p.seen.pools {
		pool, used := p.pools[i], usage[object.Name]
		p.round.pools[object.Name] = PoolStatus{Given: used.Given, Free: used.Free, Refused: pool.Wrong != nil}
		ready := metav1.Condition{Type: addresses.Ready, Status: metav1.ConditionTrue, Reason: "Ready", ObservedGeneration: object.Generation}
		switch {
		case pool.Wrong != nil:
			ready.Status, ready.Reason, ready.Message = metav1.ConditionFalse, "Refused", cut(pool.Wrong.Error())
		case used.NoRoom:
			ready.Reason, ready.Message = "RoomForSome", "its virtual routers have room for the first addresses of the ranges only"
		}
		status := addresses.AddressPoolStatus{Given: used.Given, Free: used.Free, Conditions: slices.Clone(object.Status.Conditions)}
		told := meta.FindStatusCondition(status.Conditions, addresses.Ready)
		news := told == nil && pool.Wrong != nil || told != nil && (told.Status != ready.Status || told.Message != ready.Message)
		if !setCondition(&status.Conditions, ready, p.now) && status.Given == object.Status.Given && status.Free == object.Status.Free {
			continue
		}
		w := write{key: object.Name, version: object.ResourceVersion, status: status}
		if news {
			e := events.Event{Object: events.AddressPoolObject(object.Name, string(object.UID)), Type: events.Normal, Reason: events.ReasonPoolReady, Action: "Check", Note: cmp.Or(ready.Message, "the pool gives addresses")}
			if pool.Wrong != nil {
				e.Type, e.Reason = events.Warning, events.ReasonPoolRefused
			}
			w.events = append(w.events, e)
		}
		p.write(w)
	}
}
