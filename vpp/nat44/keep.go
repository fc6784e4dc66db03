package nat44

// Beside returns the row with the weights and the tag that VPP already holds under its key, where they are as good as the planned ones: VPP
// can change neither without ending the connections of the row. Nothing is kept of a row of another service.
func (r Row) Beside(held *Row) Row {
	if held == nil || held.odd || held.Kind != r.Kind || r.Kind != Balanced || !r.SameService(held) || !r.uniform() {
		return r
	}
	if !held.uniform() || !keepsWeight(held.Locals[0].Weight, len(r.Locals)) {
		return r
	}
	if r.Affinity == held.Affinity {
		r.Tag = held.Tag
	}
	if weight := held.Locals[0].Weight; weight != r.Locals[0].Weight {
		r = r.clone()
		for i := range r.Locals {
			r.Locals[i].Weight = weight
		}
	}
	return r
}

// SameService reports whether both rows belong to the same service; held may come from an agent of an earlier version.
func (r *Row) SameService(held *Row) bool {
	if held.Tag == r.Tag {
		return true
	}
	theirs, known := ParseTag(held.Tag)
	ours, _ := ParseTag(r.Tag)
	return known && (theirs.Hash == ours.Hash || theirs.Hash == r.FormerHash)
}

// uniform reports whether the row has backends and all of them have the same weight. Only such a row has a weight class.
func (r *Row) uniform() bool {
	for _, l := range r.Locals {
		if l.Weight != r.Locals[0].Weight {
			return false
		}
	}
	return len(r.Locals) > 0
}
