package link

import (
	"testing"

	"pgregory.net/rapid"
)

// TestFIFO compares the ring with a map, over the place where contexts begin again with 0.
func TestFIFO(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		start := rapid.SampledFrom([]uint32{0, 1, ^uint32(0) - 10}).Draw(t, "start")
		f := fifo{base: start}
		open := map[uint32]int{}
		next, oldest, bytes := start, start, 0
		t.Repeat(map[string]func(*rapid.T){
			"push": func(t *rapid.T) {
				size := rapid.IntRange(1, 100).Draw(t, "bytes")
				if context := f.push(pending{room: size}); context != next {
					t.Fatalf("context %d, want %d", context, next)
				}
				open[next] = size
				bytes += size
				next++
			},
			"done": func(t *rapid.T) {
				context := oldest + rapid.Uint32Range(0, 40).Draw(t, "context")
				p := f.get(context)
				if (p != nil) != (context-oldest < next-oldest) {
					t.Fatalf("get(%d) = %v with %d to %d", context, p, oldest, next)
				}
				if p == nil {
					return
				}
				p.done = true
				delete(open, context)
				popped := f.pop()
				for before := oldest; oldest != next; oldest++ {
					if _, waits := open[oldest]; waits {
						if popped != (oldest != before) {
							t.Fatalf("pop = %v", popped)
						}
						break
					}
				}
			},
			"": func(t *rapid.T) {
				if f.n != int(next-oldest) {
					t.Fatalf("%d entries, want %d", f.n, next-oldest)
				}
				if f.get(next) != nil || f.get(oldest-1) != nil {
					t.Fatal("entry outside of the table")
				}
				if (f.oldest() == nil) != (next == oldest) {
					t.Fatal("oldest is wrong")
				}
				if len(open) == 0 && f.room != 0 {
					t.Fatalf("%d bytes in an empty table", f.room)
				}
			},
		})
	})
}
