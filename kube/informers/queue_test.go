package informers

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestQueue(t *testing.T) {
	q := newQueue()
	web, api := item{"EndpointSlice", "a/web"}, item{"EndpointSlice", "a/api"}
	q.add(web, 0)
	q.add(web, 5)
	q.add(web, 7)
	q.add(api, 3)
	<-q.wake
	select {
	case <-q.wake:
		t.Error("woken twice")
	default:
	}
	if diff := cmp.Diff(map[item]int64{web: 5, api: 3}, q.take(), cmp.AllowUnexported(item{})); diff != "" {
		t.Errorf("taken (-want +got):\n%s", diff)
	}
	if left := q.take(); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
}
