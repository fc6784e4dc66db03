// Package leader chooses one of several processes by a Lease of the API server.
package leader

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/troupe-vpp/troupe/kube/apiserver"
)

// Duration is how long a Lease without renewal keeps other processes waiting, as in
// kube-controller-manager.
const Duration = 15 * time.Second

// Elector chooses the process of a cluster that writes: it competes for one Lease. The ratio of its
// times is that of kube-controller-manager.
//
// client-go's package for this adds the types of every API group (see kube/apiserver). As in
// client-go, clocks of other processes do not matter: a Lease has expired when this process has not
// seen it change for its duration. The context of a term ends two thirds of the duration after the
// last renewal, before another process may take the Lease.
//
// An Elector belongs to the goroutine of Run, except Trouble.
type Elector struct {
	leases   apiserver.Objects[*coordinationv1.Lease]
	name     string
	identity string
	duration time.Duration
	log      *slog.Logger

	seen    *coordinationv1.Lease // as last read or written
	changed time.Time             // when it last changed, by the clock of this process
	trouble atomic.Pointer[string]
}

// New returns an elector for the Lease of this name. Each process needs another identity, and all
// have the same duration, at least a second.
func New(leases apiserver.Objects[*coordinationv1.Lease], name, identity string, duration time.Duration, log *slog.Logger) *Elector {
	return &Elector{leases: leases, name: name, identity: identity, duration: duration, log: log.With("lease", name)}
}

// renewDeadline is the time for which the holder continues without a renewal.
func (e *Elector) renewDeadline() time.Duration { return e.duration * 2 / 3 }

// retryPeriod is the time between two attempts.
func (e *Elector) retryPeriod() time.Duration { return e.duration * 2 / 15 }

// Run competes until ctx ends. It calls lead for each term; lead must return soon after its
// context, which ends with the term. Run releases the Lease when ctx ends.
func (e *Elector) Run(ctx context.Context, lead func(term context.Context)) {
	for ctx.Err() == nil {
		if !e.attempt(ctx) {
			pause(ctx, e.retryPeriod())
			continue
		}
		e.log.Info("leading", "identity", e.identity)
		e.term(ctx, lead)
		e.log.Info("not leading any more", "identity", e.identity)
	}
}

// term renews the Lease while lead runs.
func (e *Elector) term(ctx context.Context, lead func(term context.Context)) {
	term, end := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		lead(term)
	}()
	for renewed := time.Now(); ctx.Err() == nil && time.Since(renewed) < e.renewDeadline(); {
		pause(ctx, e.retryPeriod())
		attempt, cancel := context.WithDeadline(ctx, renewed.Add(e.renewDeadline()))
		if e.attempt(attempt) {
			renewed = time.Now()
		} else if e.lost() {
			renewed = time.Time{}
		}
		cancel()
	}
	end()
	<-done
	if ctx.Err() != nil {
		e.release(context.WithoutCancel(ctx))
	}
}

// lost reports whether another process holds the Lease.
func (e *Elector) lost() bool { return e.seen != nil && holder(e.seen) != e.identity }

// Trouble is why the last attempt had no answer; "" = it had one, or there was none. Any goroutine
// may ask.
func (e *Elector) Trouble() string { return or(e.trouble.Load(), "") }

// attempt takes or renews the Lease, and reports whether this process holds it.
func (e *Elector) attempt(ctx context.Context) bool {
	held, err := e.try(ctx)
	switch {
	case err == nil || apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err):
		e.trouble.Store(new(""))
	case ctx.Err() == nil && err.Error() != e.Trouble():
		e.trouble.Store(new(err.Error()))
		e.log.Warn("lease not taken or renewed", "err", err)
	}
	return held && err == nil
}

// try is one attempt.
func (e *Elector) try(ctx context.Context) (held bool, err error) {
	now := metav1.NowMicro()
	lease, err := e.leases.Get(ctx, e.name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		lease = &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: e.name}}
		e.claim(lease, now)
		lease, err = e.leases.Create(ctx, lease, metav1.CreateOptions{})
		e.see(lease, err)
		return err == nil, wrap("create", e.name, err)
	case err != nil:
		return false, wrap("get", e.name, err)
	}
	e.see(lease, nil)
	if !e.free(time.Now()) {
		return false, nil
	}
	lease = lease.DeepCopy()
	e.claim(lease, now)
	// The API server refuses the update if the Lease has changed meanwhile.
	lease, err = e.leases.Update(ctx, lease, metav1.UpdateOptions{})
	e.see(lease, err)
	return err == nil, wrap("update", e.name, err)
}

// see notes the Lease.
func (e *Elector) see(lease *coordinationv1.Lease, err error) {
	if err == nil && (e.seen == nil || e.seen.ResourceVersion != lease.ResourceVersion || e.seen.UID != lease.UID) {
		e.seen, e.changed = lease, time.Now()
	}
}

// free reports whether this process may hold the Lease: it is the holder, there is no holder, or
// the holder has not renewed in time.
func (e *Elector) free(now time.Time) bool {
	duration := time.Duration(or(e.seen.Spec.LeaseDurationSeconds, int32(e.duration/time.Second))) * time.Second
	return holder(e.seen) == e.identity || holder(e.seen) == "" || now.Sub(e.changed) >= duration
}

// release gives the Lease up, so that another process can take it at once.
func (e *Elector) release(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, e.retryPeriod())
	defer cancel()
	if e.lost() {
		return
	}
	free := e.seen.DeepCopy()
	free.Spec.HolderIdentity, free.Spec.LeaseDurationSeconds = new(""), new(int32(1))
	if _, err := e.leases.Update(ctx, free, metav1.UpdateOptions{}); err != nil {
		e.log.Warn("lease not released", "err", err)
	}
}

// claim makes this process the holder.
func (e *Elector) claim(lease *coordinationv1.Lease, now metav1.MicroTime) {
	if holder(lease) != e.identity {
		lease.Spec.AcquireTime = &now
		// the first holder is no transition
		lease.Spec.LeaseTransitions = new(or(lease.Spec.LeaseTransitions, -1) + 1)
	}
	lease.Spec.HolderIdentity, lease.Spec.LeaseDurationSeconds, lease.Spec.RenewTime = &e.identity, new(int32(e.duration/time.Second)), &now
}

func holder(lease *coordinationv1.Lease) string { return or(lease.Spec.HolderIdentity, "") }

// or returns the value of an optional field, or else another value.
func or[T any](field *T, other T) T {
	if field == nil {
		return other
	}
	return *field
}

func wrap(verb, name string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s Lease %s: %w", verb, name, err)
}

// pause waits for d or until ctx ends.
func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
