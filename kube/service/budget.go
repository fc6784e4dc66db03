package service

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/troupe-vpp/troupe/messages"
)

// Budget decides which services are served. It divides the resources of a node (Limits.Node)
// between namespaces by max-min fairness: a namespace that asks for no more than an equal share
// gets all of it, and the rest is divided among the others. So a namespace can only lose resources
// beyond its equal share, when another one asks for them.
//
// Within a namespace the oldest services come first, then the one with the smaller key. If the
// older services have left too little for a service, it gets nothing. The rest stays for younger
// services. The budget also divides the room for access lists, for the renderer that has them
// (Size.Rules).
//
// It belongs to one goroutine.
type Budget struct {
	limits     Limits
	namespaces map[string]*share
	asked      Size // by all namespaces
	// largest share of Limits.Node of each namespace; 0 = there is enough for all
	fair  Size
	stale map[string]bool // namespaces to be settled
}

// share is one namespace.
type share struct {
	members map[string]member
	order   []member          // the members, ordered; nil = not needed yet
	asked   Size              // by all of them
	refused map[string]string // why, by key
}

// member is one service of a namespace.
type member struct {
	key     string
	created int64
	size    Size
}

// compare orders members: the first one is served first.
func (m member) compare(o member) int {
	return cmp.Or(cmp.Compare(m.created, o.created), cmp.Compare(m.key, o.key))
}

// NewBudget returns a budget without services.
func NewBudget(limits Limits) *Budget {
	return &Budget{limits: limits, namespaces: map[string]*share{}, stale: map[string]bool{}}
}

// Set takes the size of a service, "namespace/name"; the zero Size removes the service. A service
// above its own limit takes nothing from the namespace, because it is not served. Refused does not
// change before Settle.
func (b *Budget) Set(key string, created int64, size Size) {
	if b.limits.Exceeded(size) != "" {
		size = Size{}
	}
	namespace := namespaceOf(key)
	s := b.namespaces[namespace]
	if s == nil {
		s = &share{members: map[string]member{}}
		b.namespaces[namespace] = s
	}
	before, now := s.members[key], member{key, created, size}
	if before == now || before.size == size && size == (Size{}) {
		return
	}
	s.replace(before, now)
	b.asked = b.asked.add(now.size).sub(before.size)
	b.stale[namespace] = true
}

// replace puts a member in the place of an earlier one. A service that asks for nothing is no
// member.
func (s *share) replace(before, now member) {
	delete(s.members, now.key)
	if now.size != (Size{}) {
		s.members[now.key] = now
	}
	s.asked = s.asked.add(now.size).sub(before.size)
	if s.order == nil {
		return
	}
	if at, found := slices.BinarySearchFunc(s.order, before, member.compare); found {
		s.order = slices.Delete(s.order, at, at+1)
	}
	if now.size != (Size{}) {
		at, _ := slices.BinarySearchFunc(s.order, now, member.compare)
		s.order = slices.Insert(s.order, at, now)
	}
}

// Settle decides which services are served. It looks only at namespaces that have changed since the
// last call: a service was set, or their share of the node is another one. It returns the services
// whose result of Refused has changed, ordered.
func (b *Budget) Settle() (changed []string) {
	if len(b.stale) == 0 {
		return nil
	}
	if fair := b.divide(); fair != b.fair {
		for namespace, s := range b.namespaces {
			if s.asked.over(fair) != nil || s.asked.over(b.fair) != nil {
				b.stale[namespace] = true
			}
		}
		b.fair = fair
	}
	for namespace := range b.stale {
		s := b.namespaces[namespace]
		changed = append(changed, s.allot(b.limits.Namespace, b.fair)...)
		if len(s.members) == 0 {
			delete(b.namespaces, namespace)
		}
	}
	clear(b.stale)
	slices.Sort(changed)
	return changed
}

// divide returns the largest share of the node that each namespace may have; no namespace gets more
// than it asks for. A resource that is enough for all namespaces is 0.
func (b *Budget) divide() (fair Size) {
	for _, r := range resources() {
		room := *r.of(&b.limits.Node)
		if room == 0 || *r.of(&b.asked) <= room {
			continue
		}
		asked := make([]int, 0, len(b.namespaces))
		for _, s := range b.namespaces {
			asked = append(asked, *r.of(&s.asked))
		}
		slices.Sort(asked)
		for i, n := range asked {
			if left := len(asked) - i; n > room/left {
				*r.of(&fair) = max(room/left, 1) // 0 would mean that there is enough
				break
			}
			room -= n
		}
	}
	return fair
}

// allot decides which services of a namespace are served, and returns the services for which the
// decision has changed. A namespace within its limits costs nothing.
func (s *share) allot(limit, fair Size) (changed []string) {
	var refused map[string]string
	if s.asked.over(limit) == nil && s.asked.over(fair) == nil {
		s.order = nil
	} else {
		if s.order == nil {
			s.order = slices.SortedFunc(maps.Values(s.members), member.compare)
		}
		refused = map[string]string{}
		var given Size
		for _, m := range s.order {
			sum := given.add(m.size)
			switch ofNamespace, ofNode := sum.over(limit), sum.over(fair); {
			case ofNamespace != nil:
				refused[m.key] = "its namespace has no room for it: older services take all that it may have (services.limits." + ofNamespace.namespace + ")"
			case ofNode != nil:
				refused[m.key] = "the node has no room for it: older services take the share of its namespace of the " + ofNode.what +
					" (services.limits." + ofNode.shared + ")"
			default:
				given = sum
			}
		}
	}
	for key := range refused {
		if before := s.refused[key]; before != "" {
			refused[key] = before // another reason is no news
		} else {
			changed = append(changed, key)
		}
	}
	for key := range s.refused {
		if refused[key] == "" {
			changed = append(changed, key)
		}
	}
	s.refused = refused
	return changed
}

// Refused says why a service within its own limit is not served; "" = it is served.
func (b *Budget) Refused(key string) string {
	if s := b.namespaces[namespaceOf(key)]; s != nil {
		return s.refused[key]
	}
	return ""
}

// namespaceOf returns the namespace of a key.
func namespaceOf(key string) string {
	namespace, _, _ := strings.Cut(key, "/")
	return namespace
}

// ResolveAll resolves all services of a cluster. It refuses a service, like Refuse, if its
// namespace has no room for it.
func ResolveAll(inputs []*messages.ServiceInput, node *messages.NodeContext, cfg Config) []*messages.ServiceView {
	budget := NewBudget(cfg.Limits)
	for _, in := range inputs {
		budget.Set(in.GetKey(), in.GetService().GetCreated(), Measure(in, node, &cfg))
	}
	budget.Settle()
	views := make([]*messages.ServiceView, len(inputs))
	for i, in := range inputs {
		if why := budget.Refused(in.GetKey()); why != "" {
			views[i] = Refuse(in, why)
		} else {
			views[i] = Resolve(in, node, cfg)
		}
	}
	return views
}
