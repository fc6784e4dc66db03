package render

import (
	"slices"
	"strconv"
	"strings"

	"github.com/troupe-vpp/troupe/kube/connector/catalog"
)

// perSlice is how many endpoints a slice has at most. The API allows 1000; a slice is rewritten and
// sent to every node for each change in it.
const perSlice = 100

// place is where an address is: in the shard-th slice of a group.
type place = map[string]int

// placements returns the places of the addresses in the owned slices that are there, by the prefix
// of the names of the slices.
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

// splitName takes the name of a slice apart into the prefix of its group and its shard.
func splitName(name string) (prefix string, shard int, ok bool) {
	at := strings.LastIndexByte(name, '-') + 1
	shard, err := strconv.Atoi(name[at:])
	return name[:at], shard, err == nil && shard >= 0 && strconv.Itoa(shard) == name[at:]
}

// serviceOf returns the name of the Service in that of a slice; "" if it is none of ours.
func serviceOf(name string) string {
	parts := strings.Split(name, "-")
	if len(parts) < 4 {
		return ""
	}
	return strings.Join(parts[:len(parts)-3], "-")
}

// spread puts ordered endpoints into shards. Each stays where it is; the others fill the first
// shards that have room. If half of the shards would do, all are put together anew.
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
