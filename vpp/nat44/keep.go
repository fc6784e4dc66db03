package nat44

// Beside returns the row as it should be beside what VPP holds under its key: with the weights and the tag that are there already, where they
// are as good as the planned ones. Neither can be changed in VPP without ending the connections of the row. A row of another service is none
// to keep to.
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

// SameService reports whether the row that VPP holds was made for the service of this one, by an agent of this version or of an earlier one.
func (r *Row) SameService(held *Row) bool {
	if held.Tag == r.Tag {
		return true
	}
	theirs, known := ParseTag(held.Tag)
	ours, _ := ParseTag(r.Tag)
	return known && (theirs.Hash == ours.Hash || theirs.Hash == r.FormerHash)
}

// uniform reports whether the row has backends and all of them have the same weight, so that it has a weight class.
func (r *Row) uniform() bool {
	for _, l := range r.Locals {
		if l.Weight != r.Locals[0].Weight {
			return false
		}
	}
	return len(r.Locals) > 0
}
