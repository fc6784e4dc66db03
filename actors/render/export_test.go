package render

import (
	"context"

	"github.com/troupe-vpp/troupe/actors/runtime"
	"github.com/troupe-vpp/troupe/vpp/link"
)

// NewCounted is New; reading is called for each read.
func NewCounted[K Key](config *Config, r Renderer[K], reading func(routine bool)) runtime.Behaviour {
	d := New(config, r).(*Driver[K])
	d.kind = counted[K]{d.kind, reading}
	return d
}

// counted is a kind that counts its reads.
type counted[K Key] struct {
	Kind[K]
	reading func(routine bool)
}

func (a counted[K]) Reader(known bool) func(context.Context, link.Caller) (any, error) {
	read := a.Kind.Reader(known)
	return func(ctx context.Context, vpp link.Caller) (any, error) {
		a.reading(link.IsRoutine(ctx))
		return read(ctx, vpp)
	}
}
