package actors

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/troupe-vpp/troupe/actors/runtime"
	"github.com/troupe-vpp/troupe/messages"
)

// AttachPod tells that an interface of VPP is that of a pod: whoever connects pods knows it before routes lead there. It is a command to the
// interfaces actor; the answer, a CommandResult, comes when the interface has its roles in VPP, or with the reason why nothing was changed.
type AttachPod struct {
	// Pod is "namespace/name".
	Pod string
	// Interface is its name in VPP.
	Interface string
}

// DetachPod takes back what AttachPod has told, if it has told anything. The answer comes when VPP holds the roles that follow without it.
type DetachPod struct {
	// Pod is "namespace/name".
	Pod string
}

// AttachmentStore keeps what was told of pods beyond the life of an actor, and of the process where it can. Its methods are called from
// goroutines of actors, one at a time.
type AttachmentStore interface {
	// Load returns what was saved last; nothing saved is no error.
	Load() (*messages.Attachments, error)
	// Save replaces it; after an error what was saved before is still there.
	Save(*messages.Attachments) error
}

// attachments are what the interfaces actor was told about pods. It embeds them.
type attachments struct {
	commands
	loaded   bool
	recorded map[string]string                    // interface by pod, as it is saved
	active   map[string]string                    // interface by pod, as the interface set is derived from it
	detached map[string]bool                      // interfaces that lost their pod by a command
	version  uint64                               // of active and detached
	latest   atomic.Pointer[messages.Attachments] // recorded, for the goroutine that saves it
	carried  map[string]*messages.Health
	gone     map[string]time.Time // by pod: since when neither it nor the interface that was recorded for it exists
	await    await
}

// forgetAfter is how long a pod and its interface have to be gone until nobody will tell that they are: a VPP that starts gets its interfaces
// back by and by, and the pods of the local mirror may be old.
const forgetAfter = 10 * time.Minute

// await is what the command under way waits for.
type await struct {
	ticket     uint64 // 0 = for nothing
	version    uint64 // a look at VPP that began with this one
	pod        string
	want       string // interface that has to be the pod's in it; "" = none
	generation uint64 // then this interface set in VPP; 0 = the look has not ended
}

// loadedAttachments and savedAttachments are the results of work on the store.
type (
	loadedAttachments struct {
		told *messages.Attachments
		err  error
	}
	savedAttachments struct {
		ticket uint64
		err    error
	}
)

func (a *attachments) prepare() {
	a.recorded, a.active, a.detached, a.carried = map[string]string{}, map[string]string{}, map[string]bool{}, map[string]*messages.Health{}
	a.gone = map[string]time.Time{}
}

// load asks the store.
func (i *interfacesActor) load(c *runtime.Context) {
	post, store := c.Post(), i.deps.Attachments
	c.Go("attachments", func(context.Context) {
		told, err := store.Load()
		post(&loadedAttachments{told, err})
	})
}

// adopt takes what was told in earlier lives. Without it the roles in VPP stay what they are, so an unreadable store is not the end.
func (i *interfacesActor) adopt(c *runtime.Context, m *loadedAttachments) {
	if m.err != nil {
		c.Logger().Error("interfaces that were attached to pods are not known any more", "err", m.err)
		record(c, &messages.Event{Kind: "interfaces", Text: "load the interfaces that were attached to pods", Error: m.err.Error()})
	}
	i.loaded = true
	for _, a := range m.told.GetItems() {
		i.recorded[a.GetPod()] = a.GetInterface()
	}
	i.active = maps.Clone(i.recorded)
	i.version++
	i.look(c)
}

// command handles what concerns commands, and reports whether it did.
func (i *interfacesActor) command(c *runtime.Context, msg any) bool {
	switch m := msg.(type) {
	case *AttachPod:
		i.submit(c, i.attaching(m.Pod, m.Interface), i.deps.Timing.Command)
	case *DetachPod:
		i.submit(c, i.attaching(m.Pod, ""), i.deps.Timing.Command)
	case *commandExpired:
		i.expired(c, m, i.deps.Timing.Command)
	case *loadedAttachments:
		i.adopt(c, m)
	case *savedAttachments:
		i.finish(c, m.ticket, m.err)
	case *messages.Health:
		i.carriedOut(c, m)
	default:
		return false
	}
	return true
}

// attaching is the command that gives a pod an interface; "" takes it away. What comes first when it is given goes last when it is taken: the
// record is there before the role, and as long as it is.
func (i *interfacesActor) attaching(pod, name string) *command {
	cmd := &command{object: pod, method: messages.Method_METHOD_UPDATE, text: "attach interface " + name}
	if name == "" {
		cmd.text = "detach its interface"
	}
	steps := []step[*runtime.Context]{i.recording(pod, name), i.giving(pod, name)}
	if name == "" {
		steps = reversed(steps)
	}
	cmd.transaction = newTransaction(steps...)
	cmd.after = i.mend
	return cmd
}

// mend has VPP read when a command has left something behind that could not be taken back.
func (i *interfacesActor) mend(c *runtime.Context, err error) {
	if k, reach := classify(err); k == classResync && reach == messages.Reach_REACH_DOWNSTREAM {
		for _, part := range i.deps.roleGivers() {
			c.Send(c.PID(PathRenderer(part)), &messages.Verify{Reason: "a command could not be taken back"})
		}
	}
}

// recording has the store keep what is told.
func (i *interfacesActor) recording(pod, name string) step[*runtime.Context] {
	var before string
	return step[*runtime.Context]{
		name: "record the interface of pod " + pod,
		do: func(c *runtime.Context) (bool, error) {
			if !i.loaded {
				return false, errNotLoaded
			}
			before = i.recorded[pod]
			return before == name || i.save(c, pod, name), nil
		},
		undo: func(c *runtime.Context) (bool, error) {
			return i.recorded[pod] == before || i.save(c, pod, before), nil
		},
	}
}

// save writes what is told; it reports false, because the store has to be waited for.
func (i *interfacesActor) save(c *runtime.Context, pod, name string) (done bool) {
	if i.recorded[pod] = name; name == "" {
		delete(i.recorded, pod)
	}
	all := &messages.Attachments{}
	for _, pod := range sortedKeys(i.recorded) {
		all.Items = append(all.Items, &messages.Attachment{Pod: pod, Interface: i.recorded[pod]})
	}
	i.latest.Store(all)
	post, store, lane, latest, ticket := c.Post(), i.deps.Attachments, i.deps.lanes.attachments, &i.latest, i.ticket()
	c.Go("attachments", func(ctx context.Context) {
		// Whoever comes last saves what is the latest then, so the order in which they come does not matter.
		if ran, err := lane.run(ctx, func() error { return store.Save(latest.Load()) }); ran {
			post(&savedAttachments{ticket, err})
		}
	})
	return false
}

// giving derives the interfaces with what is told, and waits until VPP has the roles that follow.
func (i *interfacesActor) giving(pod, name string) step[*runtime.Context] {
	var before string
	return step[*runtime.Context]{
		name: "roles of the interface of pod " + pod,
		do: func(c *runtime.Context) (bool, error) {
			if !i.link.GetUp() {
				return false, errNotConnected
			}
			before = i.active[pod]
			i.activate(c, pod, name, name)
			return false, nil
		},
		undo: func(c *runtime.Context) (bool, error) {
			i.activate(c, pod, before, "") // whether that one is in VPP or not is no matter of this command
			return false, nil
		},
	}
}

// activate changes what the set is derived from, and looks at VPP.
func (i *interfacesActor) activate(c *runtime.Context, pod, name, want string) {
	if old := i.active[pod]; old != "" && old != name {
		i.detached[old] = true
	}
	delete(i.detached, name)
	if i.active[pod] = name; name == "" {
		delete(i.active, pod)
	}
	i.version++
	i.await = await{ticket: i.ticket(), version: i.version, pod: pod, want: want}
	i.look(c)
}

// looked goes on with the command when a look at VPP has ended that knew of it.
func (i *interfacesActor) looked(c *runtime.Context, m *discovered) {
	w := &i.await
	if w.ticket == 0 || w.generation > 0 || m.version < w.version || m.session != i.link.GetSession() {
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
	i.weigh(c)
}

// ready says why an interface cannot be that of a pod; nil = it can.
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

// carriedOut hears from a renderer which interface set is in VPP.
func (i *interfacesActor) carriedOut(c *runtime.Context, m *messages.Health) {
	i.carried[m.GetPart()] = m
	if w := &i.await; w.ticket != 0 && w.generation > 0 && m.GetRefusedSet() >= w.generation {
		i.arrive(c, fmt.Errorf("%s: %w: %s", m.GetPart(), errRolesRefused, m.GetRolesRefused()))
		return
	}
	i.weigh(c)
}

// weigh ends the wait when everybody has carried out the set.
func (i *interfacesActor) weigh(c *runtime.Context) {
	if i.await.ticket == 0 || i.await.generation == 0 {
		return
	}
	for _, part := range i.deps.roleGivers() {
		if i.carried[part].GetInterfaces() < i.await.generation {
			return
		}
	}
	i.arrive(c, nil)
}

// arrive ends the wait.
func (i *interfacesActor) arrive(c *runtime.Context, err error) {
	ticket := i.await.ticket
	i.await = await{}
	i.finish(c, ticket, err)
}

// attached is what the derivation needs of it: pods by interface.
func (a *attachments) attached() map[string][]string {
	pods := map[string][]string{}
	for _, pod := range sortedKeys(a.active) {
		pods[a.active[pod]] = append(pods[a.active[pod]], pod)
	}
	return pods
}

// forget lets go of what nobody has taken back: interfaces without a pod that VPP does not have any more, and records of pods that are gone
// together with their interfaces, one at a time.
func (i *interfacesActor) forget(c *runtime.Context) {
	if !i.told || !i.loaded || i.running != nil {
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
	for _, pod := range sortedKeys(i.recorded) {
		if pods[pod] || there[i.recorded[pod]] {
			continue
		}
		since, known := i.gone[pod]
		if !known {
			i.gone[pod] = c.Now()
		} else if c.Now().Sub(since) >= forgetAfter {
			delete(i.gone, pod) // if it fails, it has as long again
			cmd := i.attaching(pod, "")
			cmd.text = "forget its interface, which is gone as the pod is"
			i.submit(c, cmd, i.deps.Timing.Command)
			return
		}
	}
}

// explains returns the command under way if a look at VPP knew of it; 0 = none.
func (a *attachments) explains(m *discovered) uint64 {
	if a.running == nil || a.await.ticket == 0 || m.version < a.await.version {
		return 0
	}
	return a.running.cause
}
