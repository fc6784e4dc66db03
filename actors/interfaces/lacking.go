package interfaces

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/troupe-vpp/troupe/actors/runtime"
	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/interfaces"
)

// lacking is what VPP lacks of this node. The zero value is for an actor that has seen no set.
type lacking struct {
	// since has the addresses that no interface leads to, and since when.
	since map[string]time.Time
	// lost is since when VPP forwards nothing; zero = it forwards.
	lost time.Time
	// hadUplink says that VPP had a default route before.
	hadUplink bool
}

// settled takes the addresses that no interface leads to, and returns the ones for which that has
// lasted for settling.
func (l *lacking) settled(now time.Time, set *messages.InterfaceSet) (out []string) {
	since := map[string]time.Time{}
	for _, address := range set.GetUnplaced() {
		at, known := l.since[address]
		if !known {
			at = now
		}
		if since[address] = at; now.Sub(at) >= settling {
			out = append(out, address)
		}
	}
	l.since = since
	return out
}

// judge reports the health of the part from the present set. A VPP that forwards nothing makes the
// node not ready: at once if it was not ready before, as after a restart of VPP, otherwise after
// the time settling. Single addresses are a warning.
func (i *interfacesActor) judge(c *runtime.Context) {
	l := &i.lacking
	why := interfaces.Lost(i.set, i.pods, l.hadUplink)
	l.hadUplink = l.hadUplink || i.set.Uplink != nil
	switch {
	case why == "":
		l.lost = time.Time{}
	case l.lost.IsZero():
		l.lost = c.Now()
	}
	ok := why == "" || i.Last.GetOk() && c.Now().Sub(l.lost) < settling
	i.Lost, i.Reach = !ok, messages.Reach_REACH_NONE
	if ok {
		if why = faults(i.set); why != "" {
			ok = false
		} else {
			why = lacks(i.set, i.pods)
		}
	}
	if !i.Last.GetOk() {
		i.Interfaces = i.set.GetGeneration()
	}
	if !i.Current(ok, why) {
		i.Report(c, ok, why, 0)
	}
}

// lacks is the warning about addresses that no interface leads to, with the names of their pods;
// "" = there are none.
func lacks(set *messages.InterfaceSet, pods []*messages.Pod) string {
	var names []string
	for _, address := range set.GetUnplaced() {
		name := "an endpoint"
		for _, pod := range pods {
			if slices.Contains(pod.GetAddresses(), address) {
				name = pod.GetNamespace() + "/" + pod.GetName()
			}
		}
		names = append(names, name+" ("+address+")")
	}
	if len(names) == 0 {
		return ""
	}
	const most = 5
	more := ""
	if len(names) > most {
		names, more = names[:most], fmt.Sprintf(" and %d more", len(names)-most)
	}
	return fmt.Sprintf("VPP has no interface for %d addresses of this node, and connections to them are lost: %s%s",
		len(set.GetUnplaced()), strings.Join(names, ", "), more)
}
