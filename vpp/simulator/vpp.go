package simulator

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"sync"
	"time"

	"github.com/troupe-vpp/troupe/vpp/simulator/model"
)

// VPP is a simulated VPP process together with its supervisor. It survives its own crashes: an
// incarnation is one run of the process.
type VPP struct {
	opts     Options
	log      *slog.Logger
	catalog  *model.Catalog
	handlers model.Registry

	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	wg     sync.WaitGroup

	// lifecycle serialises Listen, Crash, Restart and Close. It is taken before mu.
	lifecycle sync.Mutex

	mu       sync.Mutex // guards everything below, and the model
	closed   bool
	inc      *incarnation // nil while VPP is down
	started  uint64       // number of incarnations so far
	path     string       // API socket, "" before Listen
	listener *net.UnixListener
	clients  map[uint32]*client
	accepted uint32        // connections so far, for client indexes
	hung     chan struct{} // closed by Resume; nil = the main thread is not busy
	lost     bool          // the main thread never leaves its loop over the sockets
	counters Counters

	statsPath string      // statistics socket, "" before ListenStats
	stats     *statServer // nil while VPP is down, and without the socket

	faults []*armedFault
}

// incarnation is one run of the VPP process: the state that a crash destroys.
type incarnation struct {
	number uint64
	pid    uint32
	boot   time.Time
	ids    *model.Numbering
	model  *model.Model
}

// New starts a simulated VPP. It has no API socket until Listen.
func New(opts Options) *VPP {
	opts = opts.withDefaults()
	v := &VPP{
		opts:     opts,
		log:      opts.Logger,
		handlers: model.NewRegistry(),
		clients:  make(map[uint32]*client),
	}
	model.Register(v.handlers, model.ClassSession, v.sockclntCreate)
	model.Register(v.handlers, model.ClassSession, v.sockclntDelete)
	model.Register(v.handlers, model.ClassSession, controlPing)
	v.catalog = model.NewCatalog(opts.WithoutPlugins, v.handlers.Has)
	v.counters.reset()
	v.ctx, v.cancel = context.WithCancel(context.Background())
	v.lifecycle.Lock()
	defer v.lifecycle.Unlock()
	v.boot()
	return v
}

// boot begins a new incarnation and lets OnBoot build its topology. The lifecycle lock is held.
func (v *VPP) boot() {
	v.mu.Lock()
	if v.closed {
		v.mu.Unlock()
		return
	}
	v.started++
	n := v.started
	v.inc = &incarnation{
		number: n,
		pid:    uint32(4000 + 17*n),
		boot:   time.Now(),
		ids:    v.catalog.Number(n),
		model:  model.New(v.opts.Clock, v.opts.NATWorkers, v.opts.Heap),
	}
	v.inc.model.SessionLayer = v.opts.SessionLayer
	v.mu.Unlock()
	v.log.Info("simulated vpp started", "incarnation", n)
	if v.opts.OnBoot != nil {
		v.opts.OnBoot(v)
	}
}

// SetWorkers gives the next incarnation a number of workers.
func (v *VPP) SetWorkers(n int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.opts.NATWorkers = n
}

// SetSessionLayer enables the session layer of the next incarnation, or disables it.
func (v *VPP) SetSessionLayer(on bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.opts.SessionLayer = on
}

// Listen opens the binary-API socket at path and serves it until Close. Like VPP it replaces
// whatever file is there. A restart opens the same path again.
func (v *VPP) Listen(path string) error {
	v.lifecycle.Lock()
	defer v.lifecycle.Unlock()
	v.mu.Lock()
	switch {
	case v.closed:
		v.mu.Unlock()
		return ErrClosed
	case v.path != "":
		v.mu.Unlock()
		return ErrListening
	}
	v.path = path
	v.mu.Unlock()
	if err := v.bind(path); err != nil {
		v.mu.Lock()
		v.path = ""
		v.mu.Unlock()
		return err
	}
	return nil
}

// bind opens the socket and starts accepting. The lifecycle lock is held.
func (v *VPP) bind(path string) error {
	if err := os.Remove(path); err != nil && !os.IsNotExist(err) {
		return fmt.Errorf("listen on %s: %w", path, err)
	}
	ln, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return fmt.Errorf("listen on %s: %w", path, err)
	}
	ln.SetUnlinkOnClose(false)
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.closed || v.inc == nil {
		_ = ln.Close()
		return ErrDown
	}
	v.listener = ln
	v.wg.Go(func() { v.accept(ln) })
	return nil
}

// Socket returns the path of the API socket, "" before Listen.
func (v *VPP) Socket() string {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.path
}

// Close ends the simulation: all connections are closed, all goroutines have ended and the socket
// file is gone when it returns. It is idempotent.
func (v *VPP) Close() error {
	v.lifecycle.Lock()
	v.mu.Lock()
	already := v.closed
	v.closed = true
	v.takeDown()
	paths := []string{v.path, v.statsPath}
	v.cancel()
	v.resumeLocked()
	v.mu.Unlock()
	v.lifecycle.Unlock()
	v.wg.Wait()
	if already {
		return nil
	}
	var failed error
	for _, path := range paths {
		if path == "" {
			continue
		}
		if err := os.Remove(path); err != nil && !os.IsNotExist(err) {
			failed = errors.Join(failed, fmt.Errorf("close simulator: %w", err))
		}
	}
	return failed
}

// Crash ends the simulated VPP as a crash does: every connection breaks, all state is gone, the
// socket file stays and refuses connections. With Options.AutoRestart it comes back by itself,
// otherwise after Restart. A crash waits until OnBoot has returned, so that OnBoot need not expect
// it.
func (v *VPP) Crash() {
	v.lifecycle.Lock()
	defer v.lifecycle.Unlock()
	v.mu.Lock()
	defer v.mu.Unlock()
	v.crash("killed")
}

// crash is Crash with mu held.
func (v *VPP) crash(reason string) {
	if v.inc == nil || v.closed {
		return
	}
	v.log.Warn("simulated vpp died", "incarnation", v.inc.number, "reason", reason)
	v.counters.crashes++
	v.counters.lastCrash = reason
	v.takeDown()
	if v.opts.AutoRestart {
		v.wg.Go(v.restartLater)
	}
}

// takeDown ends the current incarnation. mu is held.
func (v *VPP) takeDown() {
	v.inc = nil
	if v.listener != nil {
		_ = v.listener.Close()
		v.listener = nil
	}
	v.closeStats()
	for _, c := range v.clients {
		c.shut()
	}
	clear(v.clients)
	if v.lost {
		v.resumeLocked()
	}
}

// restartLater is the process supervisor of AutoRestart.
func (v *VPP) restartLater() {
	timer := time.NewTimer(v.opts.RestartDelay)
	defer timer.Stop()
	select {
	case <-v.ctx.Done():
		return
	case <-timer.C:
	}
	if err := v.start(false); err != nil && v.ctx.Err() == nil {
		v.log.Error("cannot restart the simulated vpp", "err", err)
	}
}

// Restart brings a crashed VPP back as a new incarnation: empty state, other message ids, another
// pid, the same socket path. A running VPP is killed first.
func (v *VPP) Restart() error {
	return v.start(true)
}

// start boots the next incarnation and reopens the socket. A running VPP is killed first if force
// is set and left alone otherwise.
func (v *VPP) start(force bool) error {
	v.lifecycle.Lock()
	defer v.lifecycle.Unlock()
	v.mu.Lock()
	if v.closed {
		v.mu.Unlock()
		return ErrClosed
	}
	if v.inc != nil && !force {
		v.mu.Unlock()
		return nil
	}
	v.takeDown()
	path, statsPath := v.path, v.statsPath
	v.mu.Unlock()
	v.boot()
	if statsPath != "" {
		if err := v.bindStats(statsPath); err != nil {
			return err
		}
	}
	if path == "" {
		return nil
	}
	return v.bind(path)
}

// Alive reports whether the simulated VPP runs.
func (v *VPP) Alive() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.inc != nil
}

// Incarnation returns the number of the current incarnation of VPP, counted from 1, or 0 while it
// is down.
func (v *VPP) Incarnation() uint64 {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.inc == nil {
		return 0
	}
	return v.inc.number
}

// with runs fn on the model of the running VPP. If fn killed VPP, the crash happens before with
// returns.
func (v *VPP) with(fn func(*model.Model) error) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	switch {
	case v.closed:
		return ErrClosed
	case v.inc == nil:
		return ErrDown
	}
	m := v.inc.model
	err := fn(m)
	v.afterwards(m)
	return err
}

// afterwards follows every change of the model: it publishes the events, or ends the incarnation if
// the change killed VPP. mu is held.
func (v *VPP) afterwards(m *model.Model) {
	if m.Cause != "" {
		v.crash(m.Cause)
		return
	}
	v.updateStats(m)
	v.publish(m)
}
