package chaos

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/troupe-vpp/troupe/actors/address"
	"github.com/troupe-vpp/troupe/actors/command"
	"github.com/troupe-vpp/troupe/actors/interfaces"
	"github.com/troupe-vpp/troupe/actors/runtime"
	"github.com/troupe-vpp/troupe/vpp/nat44"
	"github.com/troupe-vpp/troupe/vpp/simulator"
)

// request makes the client send a command.
type request struct{ command any }

// commander is a client of commands inside another actor. It counts the answers.
type commander struct {
	runtime.Behaviour
	commands *commands
}

// commands counts commands and answers; it outlives the incarnations of the client.
type commands struct{ asked, answered int }

// Receive satisfies runtime.Behaviour.
func (o commander) Receive(c *runtime.Context, msg any) {
	switch m := msg.(type) {
	case *request:
		o.commands.asked++
		c.Request(c.PID(address.Interfaces), m.command)
	case *command.Result:
		o.commands.answered++
	default:
		o.Behaviour.Receive(c, msg)
	}
}

// wrap makes the sessions actor the client of commands.
func (w *world) wrap(kind string, b runtime.Behaviour) runtime.Behaviour {
	if kind == "sessions" {
		return commander{b, w.commands}
	}
	return b
}

// command sends a command about a random pod: attach its interface or one that does not exist, or
// detach.
func (w *world) command(r *rand.Rand) {
	n := r.IntN(podsPerNode)
	pod := fmt.Sprint(namespace, "/p", n)
	var cmd any
	switch r.IntN(4) {
	case 0:
		cmd = &interfaces.Detach{Pod: pod}
	case 1:
		cmd = &interfaces.Attach{Pod: pod, Interface: "nowhere"}
	default:
		cmd = &interfaces.Attach{Pod: pod, Interface: podName(n)}
	}
	if box, found := w.sys.Mailbox(address.Sessions); found {
		w.injector.count("command sent")
		box.PostUserMessage(&request{cmd})
	}
}

// expireCommands sends commands while VPP hangs for longer than the timeout of a command.
func (w *world) expireCommands(r *rand.Rand) {
	w.vpp.Hang()
	for range 3 {
		w.command(r)
	}
	w.later(7*time.Second, w.resumeVPP)
}

// answered checks that no command was answered twice (I18). A missing answer shows at rest only
// (attachDrill), because the client may have died.
func (w *world) answered() {
	if w.commands.answered > w.commands.asked {
		w.breach("I18: %d commands were answered %d times", w.commands.asked, w.commands.answered)
	}
}

// attachDrill attaches an interface without a route, and detaches it again (I18): after the answer
// VPP must hold what the answer says.
func (w *world) attachDrill() (wrong []string) {
	const name, pod = "extra", namespace + "/extra"
	index := uint32(0)
	w.withVPP(func(v *simulator.VPP) (err error) {
		index, err = v.AddInterfaceSpec(simulator.InterfaceSpec{Name: name, Kind: simulator.KindTap, Up: true})
		return err
	})
	for _, step := range []struct {
		cmd   any
		roles bool
	}{{&interfaces.Attach{Pod: pod, Interface: name}, true}, {&interfaces.Detach{Pod: pod}, false}} {
		if err := w.ask(step.cmd); err != nil {
			wrong = append(wrong, fmt.Sprintf("I18: %T: %v", step.cmd, err))
		}
		state, err := nat44.Read(context.Background(), w.vpp.Reader())
		if err != nil {
			return append(wrong, "I18: "+err.Error())
		}
		if has := state.Roles[index] != 0; has != step.roles {
			wrong = append(wrong, fmt.Sprintf("I18: after the answer to %T the interface has roles: %t", step.cmd, has))
		}
	}
	w.withVPP(func(v *simulator.VPP) error { return v.DeleteInterface(name) })
	return wrong
}

// ask sends a command and waits for its answer.
func (w *world) ask(cmd any) error {
	const deadline = 20 * time.Second
	ctx, cancel := context.WithTimeout(context.Background(), deadline)
	defer cancel()
	answer, err := w.sys.Ask(ctx, address.Interfaces, cmd)
	if err != nil {
		return err
	}
	return answer.(*command.Result).Err
}
