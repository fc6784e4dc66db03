package link

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/nat44_ed"
)

// TestResultsTellTheTruth lets several callers program mappings, each mapping once, while VPP
// crashes, loses replies, hangs and answers garbage, and callers lose patience. Afterwards it
// compares the results with the requests that VPP has seen: "done" means once, "not sent" never,
// "unknown" at most once.
func TestResultsTellTheTruth(t *testing.T) {
	for seed := range uint64(60) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 1))
			cfg := Config{Window: 1 + random.IntN(40), ReplyTimeout: time.Second, ConnectTimeout: time.Second}
			bubble(t, cfg, func(t *testing.T, vpp *fakeVPP, l *running) {
				truth(t, vpp, l, random)
			})
		})
	}
}

// truth is one run of TestResultsTellTheTruth.
func truth(t *testing.T, vpp *fakeVPP, l *running, random *rand.Rand) {
	faults := rand.New(rand.NewPCG(random.Uint64(), 4))
	vpp.setFault(func(c *fakeConn, req api.Message, frames [][]byte) [][]byte {
		if _, mapping := req.(*nat44_ed.Nat44AddDelLbStaticMapping); !mapping {
			return frames
		}
		switch faults.IntN(200) {
		case 0:
			c.end()
			return nil
		case 1:
			return nil
		case 2:
			return [][]byte{frames[0][:7]}
		}
		return frames
	})
	ended := make(chan struct{})
	var world sync.WaitGroup
	disturbances := rand.New(rand.NewPCG(random.Uint64(), 2))
	world.Go(func() { disturb(vpp, disturbances, ended) })
	var callers sync.WaitGroup
	for caller := range 3 {
		source := rand.New(rand.NewPCG(random.Uint64(), 3))
		callers.Go(func() {
			port := uint16(caller * 10000)
			for range 30 {
				n := 1 + source.IntN(150)
				reqs := make([]api.Message, n)
				for i := range reqs {
					port++
					reqs[i] = add(port)
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(1+source.IntN(3000))*time.Millisecond)
				results, err := l.Do(ctx, reqs)
				cancel()
				verify(t, vpp, reqs, results, err)
				time.Sleep(time.Duration(source.IntN(300)) * time.Millisecond)
			}
		})
	}
	callers.Wait()
	close(ended)
	world.Wait()
}

// disturb lets VPP crash and hang until the test has ended.
func disturb(vpp *fakeVPP, random *rand.Rand, ended <-chan struct{}) {
	for {
		select {
		case <-ended:
			return
		case <-time.After(time.Duration(random.IntN(2000)) * time.Millisecond):
		}
		switch random.IntN(3) {
		case 0:
			vpp.crash()
			time.Sleep(time.Duration(random.IntN(200)) * time.Millisecond)
			vpp.restart()
		case 1:
			wake := vpp.hang()
			time.Sleep(time.Duration(random.IntN(3000)) * time.Millisecond)
			wake()
		}
	}
}

// verify compares results with the requests that VPP has seen so far. Requests with an unknown
// outcome may still be executed later.
func verify(t *testing.T, vpp *fakeVPP, reqs []api.Message, results []Result, err error) {
	vpp.mu.Lock()
	defer vpp.mu.Unlock()
	for i, r := range results {
		seen := vpp.seen[reqs[i].(*nat44_ed.Nat44AddDelLbStaticMapping).ExternalPort]
		switch {
		case r.Err == nil && seen == 1 && r.Reply != nil && err == nil:
		case errors.Is(r.Err, ErrNotSent) && seen == 0:
		case errors.Is(r.Err, ErrUnknown) && seen <= 1 && err == nil:
		default:
			t.Errorf("request %d: VPP has seen it %d times, result %v, error %v", i, seen, r.Err, err)
			return
		}
	}
}
