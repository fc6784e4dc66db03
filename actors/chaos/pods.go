package chaos

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/troupe-vpp/troupe/vpp/simulator"
)

// replacePod has a pod end and another one take its place: the CNI removes its interface from VPP
// and makes a new one, under the same name.
func (w *world) replacePod(r *rand.Rand) {
	pods := []int{0, 2, 3} // others belong to clients and observed services
	n := pods[r.IntN(len(pods))]
	if w.cluster.ended[n] {
		return
	}
	w.cluster.setPod(n, true)
	w.withVPP(func(v *simulator.VPP) error { return v.DeleteInterface(podName(n)) })
	w.injector.count("pod ended")
	const least = 3 * time.Second // so that a discovery sees VPP without it
	w.later(least+seconds(r, 3), func() {
		w.withVPP(func(v *simulator.VPP) error {
			_, err := v.AddPod(podName(n), podIP(1, n))
			if err == nil && w.cluster.ip6 {
				err = connectPodIPv6(v, n)
			}
			return err
		})
		w.cluster.setPod(n, false)
	})
}

// withVPP changes VPP as a CNI does; one that is down gets its interfaces when it begins.
func (w *world) withVPP(do func(v *simulator.VPP) error) {
	if err := do(w.vpp.VPP); err != nil && w.vpp.VPP.Alive() {
		w.breach("change the interfaces: %v", err)
	}
}

// podName is the name of a pod's interface.
func podName(n int) string { return fmt.Sprint(podPrefix, n) }

// podPrefix begins the names of pods' interfaces.
const podPrefix = "pod"

// setPod says whether a pod has ended.
func (k *cluster) setPod(n int, ended bool) {
	if k.ended[n] = ended; !ended {
		delete(k.ended, n)
	}
	k.version++
}

// unseen reports whether a replaced interface may not have been missed: nothing could be
// discovered, or the news was lost. The next one has its name and its index, and only the drift
// check finds that it has no roles.
func (w *world) unseen() bool {
	away := []string{"VPP hangs", "connection cut", "answer lost", "machine sleeps", "agent restarts", "agent restarts alone", "VPP refuses", "watch gap"}
	return w.injector.counts["pod ended"] > 0 && slices.ContainsFunc(append(away, explanations()[repeat]...), func(fault string) bool {
		return w.injector.counts[fault] > 0
	})
}

// noticed is how long the interfaces actor may take to see a new interface while a pod has none.
const noticed = 1200 * time.Millisecond
