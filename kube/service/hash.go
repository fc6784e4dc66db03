package service

import "github.com/troupe-vpp/troupe/messages"

// FNV-1a, 64 bits.
const (
	fnvOffset = 14695981039346656037
	fnvPrime  = 1099511628211
)

// digest is a running FNV-1a hash.
type digest uint64

// text adds a string and its end, so that "a","bc" and "ab","c" differ.
func (d *digest) text(s string) {
	h := uint64(*d)
	for i := range len(s) {
		h = (h ^ uint64(s[i])) * fnvPrime
	}
	*d = digest(h)
	d.number(uint64(len(s)))
}

// number adds a number as one word, not byte by byte. The multiplication moves its bits up, so a
// shift brings the upper bits down again.
func (d *digest) number(n uint64) {
	h := (uint64(*d) ^ n) * fnvPrime
	*d = digest(h ^ h>>32)
}

// texts adds a list of strings.
func (d *digest) texts(list []string) {
	d.number(uint64(len(list)))
	for _, s := range list {
		d.text(s)
	}
}

// Hash returns a hash of everything in a view: equal views have equal hashes, in every process and
// on every machine that runs the same version. It is not meant to be stored.
func Hash(view *messages.ServiceView) uint64 {
	d := digest(fnvOffset)
	d.text(view.GetKey())
	d.text(view.GetUid())
	d.number(uint64(view.GetCreated())) //nolint:gosec // Only the bits matter.
	d.text(view.GetNotServed())
	d.text(view.GetRefused())
	d.number(uint64(len(view.GetFrontends())))
	for _, row := range view.GetFrontends() {
		d.frontend(row)
	}
	d.number(uint64(len(view.GetHealthChecks())))
	for _, check := range view.GetHealthChecks() {
		d.number(uint64(check.GetPort()))
		d.number(uint64(check.GetLocalEndpoints()))
		d.texts(check.GetListenAddresses())
	}
	d.number(uint64(len(view.GetErrors())))
	for _, e := range view.GetErrors() {
		d.text(e.GetSource())
		d.text(e.GetKind())
		d.text(e.GetObject())
		d.text(e.GetField())
		d.text(e.GetMessage())
		d.text(e.GetGeneral())
	}
	for _, counters := range []*messages.NoLocalEndpoints{view.GetNoLocalIpv4(), view.GetNoLocalIpv6()} {
		d.number(uint64(counters.GetInternal()))
		d.number(uint64(counters.GetExternal()))
	}
	return uint64(d)
}

// frontend adds one row.
func (d *digest) frontend(row *messages.Frontend) {
	d.text(row.GetAddress())
	d.text(row.GetPortName())
	d.number(uint64(row.GetPort()))
	d.number(uint64(row.GetProtocol())) //nolint:gosec // Only the bits matter.
	d.number(uint64(row.GetScope()))    //nolint:gosec // Only the bits matter.
	d.number(uint64(row.GetKind()))     //nolint:gosec // Only the bits matter.
	d.number(uint64(row.GetFrom()))     //nolint:gosec // Only the bits matter.
	d.number(uint64(row.GetAction()))   //nolint:gosec // Only the bits matter.
	d.number(uint64(row.GetAffinitySeconds())<<1 | uint64(count(row.GetMaglev())))
	for _, list := range [...][]*messages.Backend{row.GetBackends(), row.GetDraining()} {
		d.number(uint64(len(list)))
		for _, b := range list {
			d.text(b.GetAddress())
			d.number(uint64(b.GetPort())<<2 | uint64(count(b.GetLocal()))<<1 | uint64(count(b.GetServing())))
		}
	}
	d.texts(row.GetMasqueradeFrom())
	d.texts(row.GetAllowSources())
}
