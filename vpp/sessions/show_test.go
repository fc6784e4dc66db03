package sessions

import (
	"net/netip"
	"slices"
	"testing"
	"time"
)

// shownText is the output of VPP 25.10 and 26.06 for "show nat44 sessions".
const shownText = `NAT44 ED sessions:
-------- thread 0 vpp_main: 5 sessions --------
    i2o 10.1.0.1 proto TCP port 8000 fib 0
    o2i 10.96.0.1 proto TCP port 80 fib 0
       external host o2i 198.18.0.1:20001 i2o 10.255.255.254:4711
       i2o flow: match: saddr 10.1.0.1 sport 8000 daddr 10.255.255.254 dport 4711 proto TCP fib_idx 0 rewrite: saddr 10.96.0.1 sport 80 daddr 198.18.0.1 dport 20001 txfib 0 
       o2i flow: match: saddr 198.18.0.1 sport 20001 daddr 10.96.0.1 dport 80 proto TCP fib_idx 0 rewrite: daddr 10.1.0.1 dport 8000 txfib 0 
       index 0
       last heard 95.50
       timeout in 7435.50
       total pkts 4, total bytes 192
       static translation
       load-balancing
       twice-nat

    i2o 10.1.0.1 proto TCP port 8000 fib 0
    o2i 10.96.0.1 proto TCP port 80 fib 0
       external host 198.18.0.2:20002
       index 1
       last heard 97.00
       timeout in 237.00
       total pkts 8, total bytes 384
       static translation
       load-balancing

    i2o 10.1.0.1 proto TCP port 8000 fib 0
    o2i 10.96.0.1 proto TCP port 80 fib 0
       external host 198.18.0.3:20003
       index 2
       last heard -7240.00
       timeout in 100.00
       static translation

    i2o 10.1.0.1 proto 132 fib 0
    o2i 10.96.0.1 proto 132 fib 0
       external host 198.18.0.4:0
       last heard 1.00
       timeout in 1.00
       static translation

    i2o 10.1.0.1 proto UDP port 53 fib 0
    o2i 10.96.0.1 proto UDP port 53 fib 0
       external host 198.18.0.5:20005
       last heard 40.00
       timeout in 0.00
       dynamic translation

Showed: 5, Filtered: 0 of total 5 sessions of thread 0

`

// TestParseSessions: the timeout tells an established connection, however silent, from one that is
// not.
func TestParseSessions(t *testing.T) {
	at := netip.MustParseAddrPort
	web := Flow{Protocol: protoTCP, Frontend: at("10.96.0.1:80"), Backend: at("10.1.0.1:8000"), Service: true}
	want := []Flow{web, web, web, {
		Protocol: protoUDP, Frontend: at("10.96.0.1:53"), Backend: at("10.1.0.1:53"), Client: at("198.18.0.5:20005"), Idle: 60 * time.Second, Expired: true,
	}}
	want[0].Client, want[0].As, want[0].Idle = at("198.18.0.1:20001"), at("10.255.255.254:4711"), 4500*time.Millisecond
	want[1].Client, want[1].Idle, want[1].Unsettled = at("198.18.0.2:20002"), 3*time.Second, true
	want[2].Client, want[2].Idle = at("198.18.0.3:20003"), 7340*time.Second
	if got := (shower{lasting: 3840, began: 100}).parse(shownText); !slices.Equal(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}
