package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"strings"
)

const (
	cniVersion = "1.0.0"
	stateDir   = "/var/lib/cni/example-cni"
)

// Error codes of CNI.
const (
	codeEnvironment = 4
	codeDecode      = 6
	codeFailed      = 100 // of this plugin
)

// settings are the network configuration of the plugin, which the node process writes.
type settings struct {
	CNIVersion string         `json:"cniVersion"`
	PodCIDRs   []netip.Prefix `json:"podCIDRs"`
	PodTable   uint32         `json:"podTable"`
}

// request is a call of the runtime.
type request struct {
	settings
	container, device, namespace string
}

// failure is an error as the runtime reads it.
type failure struct {
	CNIVersion string `json:"cniVersion"`
	Code       int    `json:"code"`
	Message    string `json:"msg"`
}

// runPlugin carries out one call of the runtime and returns the exit code.
func runPlugin(env func(string) string, in io.Reader, out io.Writer) int {
	answer, code, err := call(env, in)
	if err != nil {
		answer = failure{CNIVersion: cniVersion, Code: code, Message: err.Error()}
	}
	if answer != nil {
		if wrong := json.NewEncoder(out).Encode(answer); wrong != nil {
			err = errors.Join(err, wrong)
		}
	}
	if err != nil {
		return 1
	}
	return 0
}

// call reads the call and carries it out.
func call(env func(string) string, in io.Reader) (answer any, code int, err error) {
	command := env("CNI_COMMAND")
	if command == "VERSION" {
		return map[string]any{"cniVersion": cniVersion, "supportedVersions": []string{cniVersion}}, 0, nil
	}
	r := request{container: env("CNI_CONTAINERID"), device: env("CNI_IFNAME"), namespace: env("CNI_NETNS")}
	if r.container == "" || r.device == "" || r.namespace == "" && command != "DEL" {
		return nil, codeEnvironment, errors.New("CNI_CONTAINERID, CNI_IFNAME or CNI_NETNS is empty")
	}
	// they become words in commands of ip(8)
	if !isDevice(r.device) || !isNamespace(r.namespace) {
		return nil, codeEnvironment, errors.New("CNI_IFNAME is no name of an interface, or CNI_NETNS no path without spaces")
	}
	if err := json.NewDecoder(in).Decode(&r.settings); err != nil {
		return nil, codeDecode, fmt.Errorf("read network configuration: %w", err)
	}
	unlock, err := store(stateDir).lock()
	if err != nil {
		return nil, codeFailed, err
	}
	defer unlock()
	switch command {
	case "ADD":
		answer, err = r.add(store(stateDir))
	case "DEL":
		err = r.remove(store(stateDir))
	case "CHECK":
		err = r.check(store(stateDir))
	default:
		return nil, codeEnvironment, fmt.Errorf("unknown CNI_COMMAND %q", command)
	}
	return answer, codeFailed, err
}

// isDevice reports whether a text is the name of an interface: at most 15 letters, digits, '.', '_'
// and '-', the first of which is no '-'.
func isDevice(text string) bool {
	return text != "" && len(text) <= 15 && text[0] != '-' && text != "." && text != ".." && !strings.ContainsFunc(text, func(r rune) bool { return !isWord(r) })
}

// isNamespace reports whether a text is an absolute path of such characters; DEL may have none.
func isNamespace(text string) bool {
	return text == "" || text[0] == '/' && !strings.ContainsFunc(text, func(r rune) bool { return r != '/' && r != ':' && !isWord(r) })
}

// isWord reports whether ip(8) and a shell take a character as it is.
func isWord(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '.' || r == '_' || r == '-'
}

// add gives a pod its interface. The runtime calls DEL after an error.
func (r *request) add(s store) (any, error) {
	link := linkOf(r.container, r.device)
	v, err := connect(r.PodTable)
	if err != nil {
		return nil, err
	}
	defer v.close()
	a, err := s.add(link, r.PodCIDRs, v.neighbours)
	if err != nil {
		return nil, err
	}
	if err := makeLink(link, r.device, r.namespace); err != nil {
		return nil, err
	}
	if err := configure(r.device, r.namespace, a.Addresses, everywhere); err != nil {
		return nil, err
	}
	if err := v.attach(link, a.Addresses); err != nil {
		return nil, err
	}
	return r.describe(a), nil
}

// describe is the answer to ADD.
func (r *request) describe(a attachment) map[string]any {
	type object = map[string]any
	var ips, routes []object
	for _, address := range a.Addresses {
		via := gatewayFor(address)
		// of the second interface
		ips = append(ips, object{"interface": 1, "address": single(address), "gateway": via})
		routes = append(routes, object{"dst": everywhere(address)[0], "gw": via})
	}
	return object{"cniVersion": cniVersion, "ips": ips, "routes": routes, "interfaces": []object{
		{"name": a.Link, "mac": macText(vppMAC)},
		{"name": r.device, "mac": macText(macOf(a.Link)), "sandbox": r.namespace},
	}}
}

// remove removes the interface of a pod, if it exists. If VPP does not answer, the node process
// removes it later.
func (r *request) remove(s store) error {
	link := linkOf(r.container, r.device)
	all, err := s.list()
	if err != nil {
		return err
	}
	if v, err := connect(r.PodTable); err == nil {
		defer v.close()
		a, kept := all[link]
		if kept && a.damaged() {
			known, err := v.neighbours()
			if err != nil {
				return err
			}
			for address, behind := range known {
				if behind == link {
					a.Addresses = append(a.Addresses, address)
				}
			}
		}
		if err := v.detach(link, a.Addresses); err != nil {
			return err
		}
	} else {
		fmt.Fprintln(os.Stderr, "example-cni:", err)
	}
	if _, err := net.InterfaceByName(link); err == nil {
		if err := ip("", "link del "+link); err != nil {
			return err
		}
	}
	return s.remove(link)
}

// check reports the first part of an interface that is missing.
func (r *request) check(s store) error {
	link := linkOf(r.container, r.device)
	all, err := s.list()
	if err != nil {
		return err
	}
	if _, kept := all[link]; !kept {
		return fmt.Errorf("%s has no attachment", r.device)
	}
	if err := ip(r.namespace, "link show dev "+r.device); err != nil {
		return err
	}
	v, err := connect(r.PodTable)
	if err != nil {
		return err
	}
	defer v.close()
	if _, have := v.have["host-"+link]; !have {
		return fmt.Errorf("VPP has no interface host-%s", link)
	}
	return nil
}
