package connector

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"github.com/troupe-vpp/troupe/kube/connector/render"
)

// Do carries out the writes of one service in order. It stops at the first failure, or when ctx
// ends, and returns the number of writes. Slices of a Service that is created here get it as their
// owner.
func Do(ctx context.Context, store Store, work render.Work) (made int, err error) {
	var created *corev1.Service
	for _, w := range work.Writes {
		if err := ctx.Err(); err != nil {
			return made, err
		}
		if w.Slice != nil && created != nil {
			w.Slice = render.Own(w.Slice, created)
		}
		service, err := store.Write(ctx, w)
		if err != nil {
			return made, err
		}
		if w.Verb == render.Create && w.Service != nil {
			created = service
		}
		made++
	}
	return made, nil
}
