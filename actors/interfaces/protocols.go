package interfaces

import (
	"context"
	"maps"
	"time"

	"github.com/troupe-vpp/troupe/actors/runtime"
	"github.com/troupe-vpp/troupe/vpp/stats"
)

const (
	// protocolsInterval is the time between two looks at VPP's counters. Until a look finds such
	// packets, NAT44 replaces their source.
	protocolsInterval = time.Second
	// protocolsTimeout is how long VPP may take to hand out its statistics.
	protocolsTimeout = time.Second
)

// protocolsTick starts a look at the counters.
type protocolsTick struct{}

// protocolsSeen is the result of a look.
type protocolsSeen struct {
	connection uint64
	seen       map[uint32]bool
	err        error
}

// lookAtProtocols starts a look at the counters. The next one follows its end.
func (i *interfacesActor) lookAtProtocols(c *runtime.Context) {
	if !i.link.GetUp() {
		c.After(protocolsInterval, &protocolsTick{})
		return
	}
	connection, source, post := i.link.GetSession(), i.config.OtherProtocols, c.Post()
	c.Go("other-protocols", func(ctx context.Context) {
		seen, err := readProtocols(ctx, source)
		post(&protocolsSeen{connection, seen, err})
	})
}

// readProtocols reads the counters; without a reader nothing is seen.
func readProtocols(ctx context.Context, source stats.Source[map[uint32]bool]) (map[uint32]bool, error) {
	if source == nil {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, protocolsTimeout)
	defer cancel()
	return source.Read(ctx)
}

// protocolsLooked takes the result of a look. VPP counts from its start, so nothing has to be kept.
func (i *interfacesActor) protocolsLooked(c *runtime.Context, m *protocolsSeen) {
	c.After(protocolsInterval, &protocolsTick{})
	if m.err == nil && m.connection == i.link.GetSession() && !maps.Equal(i.protocols, m.seen) {
		i.protocols = m.seen
		i.look(c)
	}
}
