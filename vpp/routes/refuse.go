package routes

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/troupe-vpp/troupe/vpp/link"
)

// NoSessionLayer is the State.Unable of a VPP without its session layer.
const NoSessionLayer = "VPP's session layer is off"

// unables are the commands that show whether VPP refuses packets to its own addresses, each with
// the only answer that says so and the reason against it otherwise. VPP 25.10 and 26.06 have no
// message for it.
var unables = [...]struct {
	command string
	able    func(answer string) bool
	why     string
}{
	// listeners on the unspecified address, of both families and any protocol
	{"show session state listening lcl 0.0.0.0:0", regexp.MustCompile(`^(Thread \d+: 0 sessions matched filter(\n|$))+$`).MatchString, "an application listens on every address of VPP"},
	{"show tcp punt", func(answer string) bool { return answer == "IPv4 TCP punt: disabled\nIPv6 TCP punt: disabled" }, "VPP punts TCP packets"},
	{"show udp punt", onlyTunnels, "VPP punts or serves UDP ports"},
}

// Unable reads State.Unable. An answer that is not understood is a reason.
func Unable(ctx context.Context, c link.Caller) (string, error) {
	for i, u := range unables {
		text, err := link.Command(ctx, c, u.command)
		retval, answered := link.Retval(err)
		switch {
		case !answered && !errors.Is(err, link.ErrUnsupported):
			return "", fmt.Errorf("read whether VPP refuses: %w", err)
		case retval != 0 && i == 0:
			return NoSessionLayer, nil // the text of a command that fails does not arrive
		case err != nil:
			return fmt.Sprintf("VPP does not answer %q", u.command), nil
		}
		if answer := strings.TrimSpace(strings.ReplaceAll(text, "\r", "")); !u.able(answer) {
			return fmt.Sprintf("%s (%s)", u.why, u.command), nil
		}
	}
	return "", nil
}

// punted are the UDP ports of one family that VPP keeps from its port-unreachable answer.
var punted = regexp.MustCompile(`^IPV4 UDP ports punt :([ \d,]*)\nIPV6 UDP ports punt :([ \d,]*)$`)

// onlyTunnels reports whether VPP has no UDP ports but those of its tunnels: VXLAN, VXLAN-GPE,
// Geneve, GTP-U and IPsec. To them VPP answers nothing.
func onlyTunnels(answer string) bool {
	found := punted.FindStringSubmatch(answer)
	if found == nil {
		return false
	}
	for _, port := range strings.FieldsFunc(found[1]+" "+found[2], func(r rune) bool { return r == ' ' || r == ',' }) {
		switch n, _ := strconv.Atoi(port); n {
		case 4789, 4790, 6081, 2152, 4500:
		default:
			return false
		}
	}
	return true
}
