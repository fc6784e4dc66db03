package dnssource

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/troupe-vpp/troupe/kube/connector/catalog"
)

// Options of a source.
type Options struct {
	// Name to look up, in lower case, without a dot at the end.
	Name string
	// SRV says that Name has SRV records, not addresses.
	SRV bool
	// Port of the service. Number 0 means the port of the SRV records; without SRV it is never 0.
	Port catalog.Port
	// Servers in the order in which they are asked.
	Servers []netip.AddrPort
}

// Parse returns the options in NAME:PORT@SERVER or _PORT._PROTOCOL.NAME[:PORT]@SERVER, with servers
// ADDRESS[:PORT],... The error names the wrong part.
func Parse(text string) (Options, error) {
	what, where, _ := strings.Cut(text, "@")
	name, number, numbered := strings.Cut(what, ":")
	o := Options{Name: strings.TrimSuffix(strings.ToLower(name), ".")}
	labels := strings.Split(o.Name, ".")
	if err := checkName(o.Name, labels); err != nil {
		return Options{}, err
	}
	if o.SRV = strings.HasPrefix(o.Name, "_"); o.SRV {
		if len(labels) < 3 || !slices.Contains([]string{"_tcp", "_udp", "_sctp"}, labels[1]) {
			return Options{}, fmt.Errorf("name %q: expected _PORT._tcp.NAME, _PORT._udp.NAME or _PORT._sctp.NAME", name)
		}
		o.Port.Name, o.Port.Protocol = labels[0][1:], strings.ToUpper(labels[1][1:])
	}
	if numbered {
		n, err := strconv.ParseUint(number, 10, 16)
		if err != nil || n == 0 {
			return Options{}, fmt.Errorf("port %q: expected 1 to 65535", number)
		}
		o.Port.Number = uint16(n)
	} else if !o.SRV {
		return Options{}, fmt.Errorf("name %q: it needs a port, NAME:PORT", name)
	}
	if where == "" {
		return Options{}, errors.New("server is missing: expected @ADDRESS[:PORT] at the end")
	}
	for server := range strings.SplitSeq(where, ",") {
		address, err := parseServer(server)
		if err != nil {
			return Options{}, err
		}
		o.Servers = append(o.Servers, address)
	}
	return o, nil
}

// service returns the name of the service in the catalog.
func (o *Options) service() string {
	labels := strings.Split(o.Name, ".")
	if o.SRV {
		return labels[2]
	}
	return labels[0]
}

// checkName returns an error if the name is not valid in a query.
func checkName(name string, labels []string) error {
	for _, label := range labels {
		strange := strings.Trim(label, "abcdefghijklmnopqrstuvwxyz0123456789-_")
		if label == "" || label == "_" || len(label) > 63 || strange != "" || len(name) > 253 {
			return fmt.Errorf("name %q is no domain name", name)
		}
	}
	return nil
}

// parseServer returns the address of a server; its port is 53 if none is given.
func parseServer(text string) (netip.AddrPort, error) {
	if address, err := netip.ParseAddr(text); err == nil {
		return netip.AddrPortFrom(address, 53), nil
	}
	out, err := netip.ParseAddrPort(text)
	if err != nil || out.Port() == 0 {
		return netip.AddrPort{}, fmt.Errorf("server %q: expected an IP address, with or without :PORT", text)
	}
	return out, nil
}
