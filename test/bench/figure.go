package main

import "slices"

// figure is what was measured of one thing at one size.
type figure struct {
	Name     string    `json:"name"`
	Services int       `json:"services"`
	Unit     string    `json:"unit"`
	Median   float64   `json:"median"`
	Least    float64   `json:"least"`
	Most     float64   `json:"most"`
	Values   []float64 `json:"values"` // one for each repetition
}

// figures are all of them, in the order in which they were measured first.
type figures struct{ list []*figure }

func newFigures() *figures { return &figures{} }

// add enters a value.
func (f *figures) add(name string, services int, unit string, value float64) {
	i := slices.IndexFunc(f.list, func(o *figure) bool { return o.Name == name && o.Services == services })
	if i < 0 {
		i = len(f.list)
		f.list = append(f.list, &figure{Name: name, Services: services, Unit: unit})
	}
	f.list[i].Values = append(f.list[i].Values, value)
}

// all returns the figures, complete, those of one name together.
func (f *figures) all() (all []figure) {
	var names []string
	for _, one := range f.list {
		if !slices.Contains(names, one.Name) {
			names = append(names, one.Name)
		}
	}
	for _, name := range names {
		for _, one := range f.list {
			if one.Name != name {
				continue
			}
			sorted := slices.Sorted(slices.Values(one.Values))
			n := len(sorted)
			one.Median, one.Least, one.Most = (sorted[(n-1)/2]+sorted[n/2])/2, sorted[0], sorted[n-1]
			all = append(all, *one)
		}
	}
	return all
}
