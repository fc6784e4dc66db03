package render

import (
	"slices"
	"strconv"
	"strings"

	"github.com/troupe-vpp/troupe/kube/connector/catalog"
)

// perSlice is the largest number of endpoints of a slice. The API allows 1000, but each change in a
// slice rewrites the whole slice and sends it to every node.
const perSlice = 100

// place is the shard, the number of the slice within its group, for each address.
type place = map[string]int

// placements returns the places of the addresses in the existing owned slices, by the prefix of the
// slices' names.
func placements(seen Observed, o Options, sources []catalog.Sourced) map[string]place {
	out := map[string]place{}
	for _, s := range seen.Slices {
		prefix, shard, ok := splitName(s.Name)
		if !ok || !o.owns(s, sources) {
			continue
		}
		if out[prefix] == nil {
			out[prefix] = place{}
		}
		for _, e := range s.Endpoints {
			if len(e.Addresses) == 1 {
				out[prefix][e.Addresses[0]] = shard
			}
		}
	}
	return out
}

// splitName splits the name of a slice into the prefix of its group and its shard.
func splitName(name string) (prefix string, shard int, ok bool) {
	at := strings.LastIndexByte(name, '-') + 1
	shard, err := strconv.Atoi(name[at:])
	return name[:at], shard, err == nil && shard >= 0 && strconv.Itoa(shard) == name[at:]
}

// serviceOf returns the name of the Service in the name of a slice; "" if the name has another
// form.
func serviceOf(name string) string {
	parts := strings.Split(name, "-")
	if len(parts) < 4 {
		return ""
	}
	return strings.Join(parts[:len(parts)-3], "-")
}

// spread puts ordered endpoints into shards. A placed endpoint stays in its shard; new endpoints
// fill the first shards that have room. If half of the shards would be enough, all endpoints are
// placed anew.
func spread(endpoints []endpoint, placed map[string]place, prefix string) map[int][]endpoint {
	out := fill(endpoints, placed[prefix])
	if need := (len(endpoints) + perSlice - 1) / perSlice; need*2 < len(out) {
		return fill(endpoints, nil)
	}
	return out
}

func fill(endpoints []endpoint, where place) map[int][]endpoint {
	out := map[int][]endpoint{}
	var homeless []endpoint
	for _, e := range endpoints {
		if shard, known := where[e.address.String()]; known && len(out[shard]) < perSlice {
			out[shard] = append(out[shard], e)
		} else {
			homeless = append(homeless, e)
		}
	}
	shard := 0
	changed := map[int]bool{}
	for _, e := range homeless {
		for len(out[shard]) >= perSlice {
			shard++
		}
		out[shard] = append(out[shard], e)
		changed[shard] = true
	}
	for shard := range changed {
		slices.SortFunc(out[shard], compareEndpoints)
	}
	return out
}
