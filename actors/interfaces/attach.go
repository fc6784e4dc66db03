package interfaces

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/troupe-vpp/troupe/actors/address"
	"github.com/troupe-vpp/troupe/actors/command"
	"github.com/troupe-vpp/troupe/actors/report"
	"github.com/troupe-vpp/troupe/actors/runtime"
	"github.com/troupe-vpp/troupe/messages"
)

// Attach says that an interface of VPP belongs to a pod, before a route leads there. It is a
// command. The command.Result comes when the interface has its roles in VPP, or with the reason why
// nothing was changed.
type Attach struct {
	// Pod is "namespace/name".
	Pod string
	// Interface is its name in VPP.
	Interface string
}

// Detach undoes Attach, if there was one. The answer comes when VPP holds the resulting roles.
type Detach struct {
	// Pod is "namespace/name".
	Pod string
}

// attachments are the interfaces of pods that were attached by command. The interfaces actor embeds
// them.
type attachments struct {
	command.Queue
	loaded   bool
	recorded map[string]string // interface by pod, as saved
	// interface by pod, as input of the interface set
	active   map[string]string
	detached map[string]bool                      // interfaces that a command has detached
	version  uint64                               // of active and detached
	latest   atomic.Pointer[messages.Attachments] // recorded, for the goroutine that saves it
	reports  map[string]*messages.Health          // by renderer: which interface set is in VPP
	// by pod: since when neither the pod nor its recorded interface exists
	gone  map[string]time.Time
	await await
}

// forgetAfter is how long a pod and its interface have to be gone until their record is deleted. A
// restarted VPP gets its interfaces back one after the other, and the pods of the local mirror may
// be old.
const forgetAfter = 10 * time.Minute

// await is the wait of the command under way.
type await struct {
	ticket     uint64 // 0 = for nothing
	version    uint64 // of the discovery that it waits for
	pod        string
	want       string // interface that has to belong to the pod in that discovery; "" = none
	generation uint64 // interface set that has to be in VPP then; 0 = the discovery has not ended
}

// Errors of attaching pods.
var (
	errNoInterface   = command.Refusal("VPP has no such interface")
	errInterfaceDown = command.Refusal("it is down in VPP")
	errNotForPods    = command.Refusal("it cannot be that of a pod: packets are not routed from it")
	errRolesRefused  = errors.New("VPP refused the roles")
)

// loadedAttachments and savedAttachments are the results of work on the store.
type (
	loadedAttachments struct {
		attachments *messages.Attachments
		err         error
	}
	savedAttachments struct {
		ticket uint64
		err    error
	}
)

// load reads the store.
func (i *interfacesActor) load(c *runtime.Context) {
	post, store := c.Post(), i.config.Attachments
	c.Go("attachments", func(context.Context) {
		attachments, err := store.Load()
		post(&loadedAttachments{attachments, err})
	})
}

// adopt takes the attachments of an earlier incarnation or process. If the store is unreadable, the
// actor goes on without them: the roles in VPP stay.
func (i *interfacesActor) adopt(c *runtime.Context, m *loadedAttachments) {
	if m.err != nil {
		c.Logger().Error("cannot load the interfaces that were attached to pods", "err", m.err)
		report.Event(c, &messages.Event{Kind: "interfaces", Text: "load the interfaces that were attached to pods", Error: m.err.Error()})
	}
	i.loaded = true
	for _, a := range m.attachments.GetItems() {
		i.recorded[a.GetPod()] = a.GetInterface()
	}
	i.active = maps.Clone(i.recorded)
	i.version++ // a discovery that is under way does not know of them
	i.look(c)
}

// handleCommand handles the messages of commands, and reports whether msg is one.
func (i *interfacesActor) handleCommand(c *runtime.Context, msg any) bool {
	switch m := msg.(type) {
	case *Attach:
		i.Submit(c, i.attaching(m.Pod, m.Interface), i.config.Command)
	case *Detach:
		i.Submit(c, i.attaching(m.Pod, ""), i.config.Command)
	case *command.Expired:
		i.Expire(c, m, i.config.Command)
	case *loadedAttachments:
		i.adopt(c, m)
	case *savedAttachments:
		i.Finish(c, m.ticket, m.err)
	case *messages.Health:
		i.rolesReported(c, m)
	default:
		return false
	}
	return true
}

// attaching is the command that gives a pod an interface; "" takes it away. The record is saved
// before the roles are given, and deleted after they are taken.
func (i *interfacesActor) attaching(pod, name string) *command.Command {
	cmd := &command.Command{Object: pod, Method: messages.Method_METHOD_UPDATE, Text: "attach interface " + name}
	if name == "" {
		cmd.Text = "detach its interface"
	}
	operations := []operation{i.recording(pod, name), i.giving(pod, name)}
	if name == "" {
		slices.Reverse(operations) // what is added first is removed last
	}
	cmd.Transaction = command.NewTransaction(operations...)
	cmd.After = i.verifyRoles
	return cmd
}

// operation is an operation of a command of this actor.
type operation = command.Operation[*runtime.Context]

// verifyRoles requests a read of VPP when the rollback of a command has failed.
func (i *interfacesActor) verifyRoles(c *runtime.Context, err error) {
	if errors.Is(err, command.ErrNotReverted) {
		for _, part := range i.config.RoleGivers {
			c.Send(c.PID(address.Renderer(part)), &messages.Verify{Reason: "the rollback of a command failed"})
		}
	}
}

// recording saves the attachment.
func (i *interfacesActor) recording(pod, name string) operation {
	var before string
	return operation{
		Name: "record the interface of pod " + pod,
		Do: func(c *runtime.Context) (bool, error) {
			if !i.loaded {
				return false, command.ErrNotLoaded
			}
			before = i.recorded[pod]
			return before == name || i.save(c, pod, name), nil
		},
		Undo: func(c *runtime.Context) (bool, error) {
			return i.recorded[pod] == before || i.save(c, pod, before), nil
		},
	}
}

// save saves the attachments. It returns false, because the result comes later.
func (i *interfacesActor) save(c *runtime.Context, pod, name string) (done bool) {
	if i.recorded[pod] = name; name == "" {
		delete(i.recorded, pod)
	}
	all := &messages.Attachments{} // a new value each time: goroutines and the store keep it
	for _, pod := range slices.Sorted(maps.Keys(i.recorded)) {
		all.Items = append(all.Items, &messages.Attachment{Pod: pod, Interface: i.recorded[pod]})
	}
	i.latest.Store(all)
	post, store, saves, latest, ticket := c.Post(), i.config.Attachments, i.config.Saves, &i.latest, i.Ticket()
	c.Go("attachments", func(ctx context.Context) {
		// Each goroutine saves what is the latest when its turn comes, so their order does
		// not matter.
		if ran, err := saves.Run(ctx, func() error { return store.Save(latest.Load()) }); ran {
			post(&savedAttachments{ticket, err})
		}
	})
	return false
}

// giving derives the interface set with the attachment, and waits until VPP has the resulting
// roles.
func (i *interfacesActor) giving(pod, name string) operation {
	var before string
	return operation{
		Name: "roles of the interface of pod " + pod,
		Do: func(c *runtime.Context) (bool, error) {
			if !i.link.GetUp() {
				return false, command.ErrNotConnected
			}
			before = i.active[pod]
			i.activate(c, pod, name, name)
			return false, nil
		},
		Undo: func(c *runtime.Context) (bool, error) {
			// the former interface may be missing in VPP: it does not concern this
			// command
			i.activate(c, pod, before, "")
			return false, nil
		},
	}
}

// activate changes the attachments in use, and starts a discovery.
func (i *interfacesActor) activate(c *runtime.Context, pod, name, want string) {
	if old := i.active[pod]; old != "" && old != name {
		// renderers take roles away only from detached interfaces
		i.detached[old] = true
	}
	delete(i.detached, name)
	if i.active[pod] = name; name == "" {
		delete(i.active, pod)
	}
	i.version++
	i.await = await{ticket: i.Ticket(), version: i.version, pod: pod, want: want}
	i.look(c)
}

// looked continues the command when a discovery with its change has ended.
func (i *interfacesActor) looked(c *runtime.Context, m *discovered) {
	w := &i.await
	if w.ticket == 0 || w.generation > 0 || m.version < w.version || m.connection != i.link.GetSession() {
		return
	}
	err := m.err
	if err == nil && w.want != "" {
		err = ready(i.set, w.pod, w.want)
	}
	if err != nil {
		i.arrive(c, err)
		return
	}
	w.generation = i.set.GetGeneration()
	i.checkRoles(c)
}

// ready says why an interface cannot belong to a pod; nil = it can.
func ready(set *messages.InterfaceSet, pod, name string) error {
	for _, one := range set.GetInterfaces() {
		switch {
		case one.GetName() != name:
			continue
		case !one.GetAdminUp():
			return fmt.Errorf("interface %s: %w", name, errInterfaceDown)
		case !one.GetFrontend() || !slices.Contains(one.GetPods(), pod):
			return fmt.Errorf("interface %s: %w", name, errNotForPods)
		}
		return nil
	}
	return fmt.Errorf("interface %s: %w", name, errNoInterface)
}

// rolesReported takes the health of a renderer, which says which interface set is in VPP.
func (i *interfacesActor) rolesReported(c *runtime.Context, m *messages.Health) {
	// also without a command: the next one may lead to the same set
	i.reports[m.GetPart()] = m
	if w := &i.await; w.ticket != 0 && w.generation > 0 && m.GetRefusedSet() >= w.generation {
		i.arrive(c, fmt.Errorf("%s: %w: %s", m.GetPart(), errRolesRefused, m.GetRolesRefused()))
		return
	}
	i.checkRoles(c)
}

// checkRoles ends the wait when every renderer that gives roles has carried out the set.
func (i *interfacesActor) checkRoles(c *runtime.Context) {
	if i.await.ticket == 0 || i.await.generation == 0 {
		return
	}
	for _, part := range i.config.RoleGivers {
		if i.reports[part].GetInterfaces() < i.await.generation {
			return
		}
	}
	i.arrive(c, nil)
}

// arrive ends the wait.
func (i *interfacesActor) arrive(c *runtime.Context, err error) {
	ticket := i.await.ticket
	i.await = await{}
	i.Finish(c, ticket, err)
}

// attached returns the pods by interface, for the derivation.
func (a *attachments) attached() map[string][]string {
	pods := map[string][]string{}
	for _, pod := range slices.Sorted(maps.Keys(a.active)) {
		pods[a.active[pod]] = append(pods[a.active[pod]], pod)
	}
	return pods
}

// forget drops detached interfaces that VPP does not have any more. One at a time, it also drops
// records of pods that are gone together with their interfaces.
func (i *interfacesActor) forget(c *runtime.Context) {
	if !i.podsKnown || !i.loaded || i.Running() != nil { // before the pods are known, none is gone
		return
	}
	there := map[string]bool{}
	for _, one := range i.set.GetInterfaces() {
		there[one.GetName()] = true
	}
	maps.DeleteFunc(i.detached, func(name string, _ bool) bool { return !there[name] })
	pods := map[string]bool{}
	for _, pod := range i.pods {
		pods[pod.GetNamespace()+"/"+pod.GetName()] = true
	}
	maps.DeleteFunc(i.gone, func(pod string, _ time.Time) bool {
		return i.recorded[pod] == "" || pods[pod] || there[i.recorded[pod]]
	})
	for _, pod := range slices.Sorted(maps.Keys(i.recorded)) {
		if pods[pod] || there[i.recorded[pod]] {
			continue
		}
		since, known := i.gone[pod]
		if !known {
			i.gone[pod] = c.Now()
		} else if c.Now().Sub(since) >= forgetAfter {
			delete(i.gone, pod) // if the command fails, the delay begins again
			cmd := i.attaching(pod, "")
			cmd.Text = "forget its interface, which is gone as the pod is"
			i.Submit(c, cmd, i.config.Command)
			return
		}
	}
}

// explains returns the cause of the command under way if the discovery has its change; 0 = none.
func (a *attachments) explains(m *discovered) uint64 {
	if a.Running() == nil || a.await.ticket == 0 || m.version < a.await.version {
		return 0
	}
	return a.Running().Cause()
}

// MemoryStore is a Store that lasts as long as the process. Afterwards the component that connects
// pods has to attach them again.
type MemoryStore struct {
	mu    sync.Mutex
	saved *messages.Attachments
}

// Load satisfies Store.
func (s *MemoryStore) Load() (*messages.Attachments, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.saved, nil
}

// Save satisfies Store.
func (s *MemoryStore) Save(attachments *messages.Attachments) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.saved = attachments
	return nil
}

// Store keeps the attachments over restarts of the actor, and of the process where it can. Its
// methods are called from goroutines of actors, one at a time.
type Store interface {
	// Load returns what was saved last; nothing saved is no error.
	Load() (*messages.Attachments, error)
	// Save replaces the saved attachments; after an error the earlier ones are still there.
	Save(*messages.Attachments) error
}
