package live

import "time"

// Replay is the plan that injects the recorded faults again: the same ones into the same actors, as
// long after each other as they were, but at most a minute.
func (s *Status) Replay() Plan {
	plan := Plan{Name: "replay", BlastRadius: MostFaults, Faults: []Step{}}
	most := min(time.Minute, MostRunFor/time.Duration(len(s.Records)+1))
	at := time.Second // a step at 0 would be one at a random time
	for i := len(s.Records) - 1; i >= 0; i-- {
		r := &s.Records[i] // the newest comes first
		if i < len(s.Records)-1 {
			at += min(r.Began.Sub(s.Records[i+1].Began), most)
		}
		step := Step{Fault: r.What, At: Duration(at)}
		step.Actor = r.Actor
		plan.Faults = append(plan.Faults, step)
	}
	plan.For = Duration(at + time.Second)
	return plan
}
