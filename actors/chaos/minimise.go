package chaos

// Minimise looks for the smallest plan with which a seed still fails: it leaves out steps, half of them at a time, then fewer, as long as
// something can be left out. It plays at most budget runs and returns the best plan that it found, with its result.
func Minimise(seed uint64, plan Plan, budget int) (*Result, error) {
	best, err := Run(seed, plan, nil)
	if err != nil || best.OK() {
		return best, err
	}
	for size := (len(best.Plan.Steps) + 1) / 2; size > 0 && budget > 0; {
		smaller := false
		for from := 0; from < len(best.Plan.Steps) && budget > 0; budget-- {
			r, err := Run(seed, best.Plan.without(from, size), nil)
			if err != nil {
				return best, err
			}
			if r.OK() {
				from += size
			} else {
				best, smaller = r, true
			}
		}
		if !smaller || size > 1 {
			size /= 2
		}
	}
	return best, nil
}

// without is the plan without size steps.
func (p Plan) without(from, size int) Plan {
	to := min(from+size, len(p.Steps))
	steps := make([]Step, 0, len(p.Steps)-(to-from))
	steps = append(steps, p.Steps[:from]...)
	p.Steps = append(steps, p.Steps[to:]...)
	return p
}
