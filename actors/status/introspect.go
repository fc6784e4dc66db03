package status

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/troupe-vpp/troupe/actors/address"
	"github.com/troupe-vpp/troupe/actors/report"
	"github.com/troupe-vpp/troupe/actors/runtime"
	"github.com/troupe-vpp/troupe/kube/events"
	"github.com/troupe-vpp/troupe/kube/healthcheck"
	"github.com/troupe-vpp/troupe/messages"
)

// HealthChecks is the part of the servers of health-check node ports that introspection needs;
// *healthcheck.Servers satisfies it.
type HealthChecks interface {
	// Set replaces all checks. It never blocks; the latest value wins.
	Set([]healthcheck.Check)
}

// Config is the configuration of introspection. It is read-only.
type Config struct {
	// NodeName is this node's name in Kubernetes.
	NodeName string
	// Pending is where introspection publishes since when changes of services wait; nil =
	// nowhere.
	Pending *PendingSince
	// Events records Kubernetes Events about services; nil = none are recorded. It must not
	// block.
	Events events.Recorder
	// HealthChecks answers the health-check node ports; nil = they are not answered.
	HealthChecks HealthChecks
	// Observer counts.
	Observer report.Observer
}

// ServicesQuery asks introspection for services. The answer is a ServicesPage.
type ServicesQuery struct {
	// Key selects one service, "namespace/name"; "" = all.
	Key string
}

// ServicesPage answers a ServicesQuery. Its values are shared and must not be modified.
type ServicesPage struct {
	// Services are ordered by key.
	Services []*messages.ServiceStatus
	// Unplaced are the addresses of this node to which no interface of VPP leads, ordered.
	Unplaced []string
	// ServiceCIDRs are the networks of the ServiceCIDR objects.
	ServiceCIDRs []string
	// Faulty are the interfaces with a fault, behind which endpoints cannot be served.
	Faulty []*messages.Interface
	// Read is when the oldest of the renderers' last readings of VPP began; zero = there is none.
	Read time.Time
}

// WorldQuery asks introspection for everything except the services. The answer is a WorldPage.
type WorldQuery struct{}

// WorldPage answers a WorldQuery. Its values are shared and must not be modified; unknown values
// are nil.
type WorldPage struct {
	// Link is the connection to VPP.
	Link *messages.LinkState
	// Interfaces is the last interface set.
	Interfaces *messages.InterfaceSet
	// Cluster is the state that the nodes agreed on.
	Cluster *messages.ClusterState
	// Node has the nodes and pods in Kubernetes.
	Node *messages.NodeInput
	// Verified are the last readings of VPP by renderer, Repairs the last ones with differences.
	Verified, Repairs map[string]*messages.Verified
	// Filled is when each renderer had first repaired the VPP that has restarted, in Unix
	// nanoseconds; nil = this incarnation has seen no restart.
	Filled map[string]int64
}

// introspect keeps the last state that each actor has sent, for operators.
type introspect struct {
	config    *Config
	services  map[string]*messages.ServiceStatus
	exist     map[string]bool // the services in the registry's last complete list
	listed    uint64          // the generation of that list
	world     WorldPage
	problems  int // of services
	counted   int // problems that the observer was last called with
	publisher *publisher
}

// NewIntrospect returns the actor.
func NewIntrospect(config *Config) runtime.Behaviour {
	return &introspect{
		config: config, publisher: newPublisher(config), services: map[string]*messages.ServiceStatus{},
		world: WorldPage{Verified: map[string]*messages.Verified{}, Repairs: map[string]*messages.Verified{}},
	}
}

// Start satisfies runtime.Behaviour. A restarted introspection asks the others to repeat their
// state.
func (i *introspect) Start(c *runtime.Context) {
	if c.Incarnation() > 1 {
		for _, path := range []string{address.Registry, address.Link, address.Interfaces, address.Nodes} {
			c.Send(c.PID(path), &messages.Resync{Sibling: "introspect", Incarnation: c.Incarnation()})
		}
	}
	c.Ready()
}

func (*introspect) Stop(*runtime.Context) {}

func (i *introspect) Receive(c *runtime.Context, msg any) {
	switch m := msg.(type) {
	case *messages.ServiceStatus:
		i.status(m)
	case *messages.Ensure:
		i.drop(m)
	case *messages.Fault:
		i.publisher.fault(m)
	case *messages.LinkState:
		if before := i.world.Link; before != nil && m.GetBack() != before.GetBack() {
			i.world.Filled = map[string]int64{}
		}
		i.world.Link = m
	case *messages.InterfaceSet:
		i.world.Interfaces = m
	case *messages.ClusterState:
		i.world.Cluster = m
	case *messages.NodeChanged:
		i.world.Node = m.GetInput()
		i.countProblems()
	case *messages.Verified:
		i.verified(m)
	case *ServicesQuery:
		c.Reply(i.page(m))
	case *WorldQuery:
		page := i.world
		page.Verified, page.Repairs, page.Filled = maps.Clone(page.Verified), maps.Clone(page.Repairs), maps.Clone(page.Filled)
		c.Reply(&page)
	}
}

// verified takes a reading of VPP, and later its repair.
func (i *introspect) verified(m *messages.Verified) {
	renderer, end := m.GetRenderer(), m.GetBegan()+m.GetTook()
	i.world.Verified[renderer] = m
	if m.GetDifferences() > 0 {
		i.world.Repairs[renderer], end = m, m.GetRepaired()
	}
	if filled := i.world.Filled; filled != nil && filled[renderer] == 0 && m.GetBegan() >= i.world.Link.GetBack() {
		filled[renderer] = end
	}
}

// status takes the status of a service.
func (i *introspect) status(m *messages.ServiceStatus) {
	key := m.GetKey()
	before := i.services[key]
	if m == before || m.GetGeneration() < before.GetGeneration() || m.GetGeneration() <= i.listed && !i.exist[key] {
		return // outdated
	}
	i.problems -= len(before.GetErrors())
	if m.GetGone() {
		delete(i.services, key)
	} else {
		i.services[key] = m
		i.problems += len(m.GetErrors())
	}
	i.countProblems()
	if i.config.Pending != nil {
		var since time.Time
		if at := m.GetUnanswered(); at != 0 && !m.GetGone() {
			since = time.Unix(0, at)
		}
		i.config.Pending.set(key, since)
	}
	i.publisher.status(m)
}

// drop forgets the services that are not in a complete list: their actors may have ended without a
// last status.
func (i *introspect) drop(m *messages.Ensure) {
	if !m.GetComplete() {
		return // the list has only new services, which will publish their status
	}
	i.exist, i.listed = make(map[string]bool, len(m.GetKeys())), m.GetGeneration()
	for _, key := range m.GetKeys() {
		i.exist[key] = true
	}
	for key, s := range i.services {
		if !i.exist[key] {
			i.problems -= len(s.GetErrors())
			delete(i.services, key)
		}
	}
	i.countProblems()
	if i.config.Pending != nil {
		i.config.Pending.keep(i.exist)
	}
	i.publisher.exist(i.exist, i.services)
}

// countProblems reports the number of problems when it has changed: problems of services, and other
// ones, for example unreadable files.
func (i *introspect) countProblems() {
	if n := i.problems + len(i.world.Node.GetErrors()); n != i.counted {
		i.counted = n
		i.config.Observer.InputErrors(n)
	}
}

func (i *introspect) page(q *ServicesQuery) *ServicesPage {
	page := &ServicesPage{Unplaced: i.world.Interfaces.GetUnplaced(), ServiceCIDRs: i.world.Node.GetServiceCidrs()}
	for _, one := range i.world.Interfaces.GetInterfaces() {
		if one.GetFault() != "" {
			page.Faulty = append(page.Faulty, one)
		}
	}
	for _, v := range i.world.Verified {
		if began := time.Unix(0, v.GetBegan()); page.Read.IsZero() || began.Before(page.Read) {
			page.Read = began
		}
	}
	if q.Key != "" {
		if s := i.services[q.Key]; s != nil {
			page.Services = []*messages.ServiceStatus{s}
		}
		return page
	}
	page.Services = slices.Collect(maps.Values(i.services))
	slices.SortFunc(page.Services, func(a, b *messages.ServiceStatus) int { return strings.Compare(a.GetKey(), b.GetKey()) })
	return page
}
