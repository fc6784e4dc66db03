package informers

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestQueue(t *testing.T) {
	q := newQueue()
	web, api := item{"EndpointSlice", "a/web"}, item{"EndpointSlice", "a/api"}
	q.add(web, "")
	q.add(web, "first")
	q.add(web, "second")
	q.add(api, "other")
	<-q.wake
	select {
	case <-q.wake:
		t.Error("woken twice")
	default:
	}
	if diff := cmp.Diff(map[item]string{web: "first", api: "other"}, q.take(), cmp.AllowUnexported(item{})); diff != "" {
		t.Errorf("taken (-want +got):\n%s", diff)
	}
	if left := q.take(); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
}
