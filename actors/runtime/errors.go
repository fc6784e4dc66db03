package runtime

import "errors"

// Sentinel errors of this package, for errors.Is.
var (
	// ErrNoActor says that the path has no actor.
	ErrNoActor = errors.New("no such actor")
	// ErrNameExists says that the name is taken, possibly by an actor that is still stopping.
	ErrNameExists = errors.New("actor name exists")
	// ErrShutdown says that the system is shutting down or has shut down.
	ErrShutdown = errors.New("actor system is shut down")
	// ErrDown says that the supervisor is restarting or stopping and must not start children.
	ErrDown = errors.New("supervisor is going down")
	// ErrBusy says that an actor did not answer in time; the error that wraps it says what the
	// actor is doing.
	ErrBusy = errors.New("actor is busy")
	// ErrKilled is the reason of a failure that Kill made.
	ErrKilled = errors.New("killed")
	// ErrRestart is the reason of a failure that messages.Restart requested.
	ErrRestart = errors.New("restart ordered")
	// ErrGoexit is the reason of a failure by runtime.Goexit inside a handler, for example
	// t.FailNow in a test.
	ErrGoexit = errors.New("handler ended its goroutine")
	// ErrStopped is the reason of the fault of a supervised actor that stopped although its
	// supervisor did not stop it.
	ErrStopped = errors.New("stopped without failing")
	// ErrBudget says that the children of a supervisor failed too often; the supervisor itself
	// fails with it.
	ErrBudget = errors.New("restart budget exceeded")
	// ErrNoGoroutines is the reason of a failure of an actor that calls Go in a simulation that
	// does not allow it.
	ErrNoGoroutines = errors.New("goroutines are not allowed in this simulation")
	// ErrStepLimit says that a simulation took more steps than it may.
	ErrStepLimit = errors.New("simulation exceeded its step limit")
)
