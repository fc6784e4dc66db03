package live

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestReplay: the plan of records has their faults in their order, with their pauses.
func TestReplay(t *testing.T) {
	began := time.Date(2026, 11, 21, 8, 0, 0, 0, time.UTC)
	record := func(id uint64, after time.Duration, actor string, f Fault) Record {
		return Record{ID: id, What: f, Actor: actor, Began: began.Add(after)}
	}
	status := Status{Records: []Record{
		record(4, 2*time.Hour, "agent/world", Fault{Kind: Kill, Actor: "world"}),
		record(3, 1500*time.Millisecond, "agent/dataplane/nat44", Fault{Kind: Drop, Actor: "nat44", Rate: 0.5, For: Duration(time.Minute)}),
		record(1, 0, "agent/world/services/a~b", Fault{Kind: Kill, Actor: "a/b"}),
	}}
	plan := status.Replay()
	want := []Step{
		{Fault: Fault{Kind: Kill, Actor: "agent/world/services/a~b"}, At: Duration(time.Second)},
		{Fault: Fault{Kind: Drop, Actor: "agent/dataplane/nat44", Rate: 0.5, For: Duration(time.Minute)}, At: Duration(2500 * time.Millisecond)},
		{Fault: Fault{Kind: Kill, Actor: "agent/world"}, At: Duration(62500 * time.Millisecond)},
	}
	if diff := cmp.Diff(want, plan.Faults); diff != "" || plan.For != Duration(63500*time.Millisecond) {
		t.Errorf("for %v, -want +got:\n%s", plan.For, diff)
	}
	if err := plan.Check(); err != nil {
		t.Error(err)
	}
	for len(status.Records) < 1000 { // the plan of any number of records is short enough to run
		status.Records = append([]Record{record(9, time.Duration(len(status.Records))*time.Hour, "agent/world", Fault{Kind: Kill})}, status.Records...)
	}
	if plan := status.Replay(); plan.For > Duration(MostRunFor) || len(plan.Faults) != 1000 {
		t.Errorf("for %v, %d faults", plan.For, len(plan.Faults))
	}
}
