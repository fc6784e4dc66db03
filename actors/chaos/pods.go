package chaos

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/troupe-vpp/troupe/vpp/simulator"
)

// replacePod ends a pod and starts another one: the CNI removes the interface from VPP and makes a
// new one with the same name.
func (w *world) replacePod(r *rand.Rand) {
	pods := []int{0, 2, 3} // the other pods are clients or serve observed services
	n := pods[r.IntN(len(pods))]
	if w.cluster.ended[n] {
		return
	}
	w.cluster.setPod(n, true)
	w.withVPP(func(v *simulator.VPP) error { return v.DeleteInterface(podName(n)) })
	w.injector.count("pod ended")
	const least = 3 * time.Second // long enough for a discovery without the interface
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

// withVPP changes VPP as a CNI does. It ignores the error of a VPP that is down, which gets its
// interfaces at its start.
func (w *world) withVPP(do func(v *simulator.VPP) error) {
	if err := do(w.vpp.VPP); err != nil && w.vpp.VPP.Alive() {
		w.breach("change the interfaces: %v", err)
	}
}

// podPrefix begins the names of the interfaces of pods.
const podPrefix = "pod"

// podName is the name of the interface of a pod.
func podName(n int) string { return fmt.Sprint(podPrefix, n) }

// setPod notes whether a pod has ended.
func (k *cluster) setPod(n int, ended bool) {
	if k.ended[n] = ended; !ended {
		delete(k.ended, n)
	}
	k.version++
}

// unseen reports whether only a drift check may find a difference. The agent may have missed that
// an interface was replaced, because it could not read VPP, or a message was lost: the next
// interface has the same name and index, but no roles. And VPP does not list a route of an earlier
// process beneath a route of CNAT, after which it shows.
func (w *world) unseen() bool {
	counts := w.injector.counts
	return counts["pod ended"] > 0 && counts.any(blinds|loses) ||
		w.cluster.ip6 && counts["agent restarts"]+counts["agent restarts alone"] > 0
}
