package files

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/troupe-vpp/troupe/kube/normalize"
	"github.com/troupe-vpp/troupe/messages"
)

// lastGood returns the objects of a file after it was decoded again: the new objects, and the old
// objects that cannot be decoded any more. If a problem does not name its object, all old objects
// that are missing stay.
func lastGood(old, now *normalize.Objects, problems []*messages.ObjectError) *normalize.Objects {
	broken, unknown := brokenIn(problems)
	there := map[object]bool{}
	out := &normalize.Objects{Ignored: now.Ignored}
	merge(out, now, func(id object) bool {
		there[id] = true
		return false
	})
	// A misspelt name could hide any object of the file; dropping a service by a typo is worse than
	// keeping a deleted one for a while.
	merge(out, old, func(id object) bool { return there[id] || !unknown && !broken[id] })
	return out
}

// brokenIn returns the objects that the problems name. unknown is true if a problem does not name
// its object.
func brokenIn(problems []*messages.ObjectError) (broken map[object]bool, unknown bool) {
	broken = map[object]bool{}
	for _, p := range problems {
		id := object{p.GetKind(), p.GetObject()}
		broken[id] = true
		unknown = unknown || !names(id)
	}
	return broken, unknown
}

// names reports whether id is a valid name of an object. Otherwise it is a place in a file.
func names(id object) bool {
	name := id.name
	if normalize.Namespaced(id.kind) {
		namespace, rest, found := strings.Cut(name, "/")
		if !found || len(validation.IsDNS1123Label(namespace)) > 0 {
			return false
		}
		name = rest
	}
	return versions[id.kind] != "" && len(validation.IsDNS1123Subdomain(name)) == 0
}

// merge appends the objects of from to into, except objects for which skip is true.
func merge(into, from *normalize.Objects, skip func(object) bool) {
	into.Services = appendUnless(into.Services, from.Services, normalize.KindService, normalize.ServiceKey, skip)
	into.Slices = appendUnless(into.Slices, from.Slices, normalize.KindEndpointSlice, normalize.SliceKey, skip)
	into.Nodes = appendUnless(into.Nodes, from.Nodes, normalize.KindNode, (*messages.Node).GetName, skip)
	into.Pods = appendUnless(into.Pods, from.Pods, normalize.KindPod, normalize.PodKey, skip)
	into.ServiceCIDRs = appendUnless(into.ServiceCIDRs, from.ServiceCIDRs, normalize.KindServiceCIDR, cidrKey, skip)
	into.AddressPools = appendUnless(into.AddressPools, from.AddressPools, normalize.KindAddressPool, (*messages.AddressPool).GetName, skip)
}

func cidrKey(c *normalize.ServiceCIDRs) string { return c.Name }

// appendUnless is merge for one kind.
func appendUnless[M any](into, from []M, kind string, key func(M) string, skip func(object) bool) []M {
	for _, m := range from {
		if !skip(object{kind, key(m)}) {
			into = append(into, m)
		}
	}
	return into
}

// sortedNames returns the file names in order. The order decides which file counts if an object
// occurs twice.
func sortedNames(files map[string]*file) []string { return slices.Sorted(maps.Keys(files)) }
