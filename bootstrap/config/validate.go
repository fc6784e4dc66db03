package config

import (
	"cmp"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/troupe-vpp/troupe/bootstrap/hostroute"
	"github.com/troupe-vpp/troupe/kube/strictyaml"
	"github.com/troupe-vpp/troupe/vpp/rule"
)

// Values of fields with a list of allowed values.
const (
	RendererAuto          = "auto"
	RendererNAT44         = "nat44"
	RendererCNAT          = "cnat"
	RendererDual          = "dual"
	SourceKubernetes      = "kubernetes"
	SourceFilesPrefix     = "files:"
	VPPSocket             = "socket"
	VPPSimulated          = "simulated"
	EtcdExternal          = "external"
	EtcdEmbedded          = "embedded"
	EtcdNone              = "none"
	HostRouteSourceKernel = "kernel"
	HostRouteSourceNode   = "node"
	StoreAuto             = "auto"
	StoreEtcd             = "etcd"
	StoreKubernetes       = "kubernetes"
	StoreNone             = "none"
)

// FilesDir returns the directory of a "files:DIR" source.
func (k Kubernetes) FilesDir() (dir string, ok bool) {
	return strings.CutPrefix(k.Source, SourceFilesPrefix)
}

// EtcdDataDir is the directory of an embedded etcd.
func (a *Agent) EtcdDataDir() string { return cmp.Or(a.DataDir, a.Etcd.DataDir) }

// MirrorDir is the directory of the local mirror, "" = there is none.
func (a *Agent) MirrorDir() string {
	if a.DataDir == "" {
		return ""
	}
	return filepath.Join(a.DataDir, "mirror")
}

// Validate checks every value, and values that depend on each other. It reports all problems at
// once (Errors), each with the line or the flag of the value. It does not require a node name: see
// ValidateForStart.
func (doc *Document) Validate() error {
	v := &validator{doc: doc}
	for _, f := range schema() {
		v.field(f)
	}
	v.together(doc.Agent)
	return v.errs.OrNil()
}

// ValidateForStart is Validate for an agent that is about to start: it also requires the fields
// that a file shared by nodes may leave empty.
func (doc *Document) ValidateForStart() error {
	v := &validator{doc: doc}
	if doc.Agent.NodeName == "" {
		v.fail("nodeName", "is required: set it in the file or pass --node-name")
	}
	if doc.Agent.NodeStore.Type == StoreEtcd && !doc.Agent.HasEtcd() {
		v.fail("etcd.endpoints", "is required: pass --etcd-endpoints URL,... or --etcd embedded")
	}
	return Join(v.errs.OrNil(), doc.Validate())
}

type validator struct {
	doc  *Document
	errs Errors
}

// fail records a problem with the flag or the line of the value, if it has one.
func (v *validator) fail(path, format string, args ...any) {
	e := &FieldError{Problem: strictyaml.Problem{Path: path, Message: fmt.Sprintf(format, args...)}}
	list, _, _ := strings.Cut(path, "[")
	if flag := v.doc.flags[list]; flag != "" {
		e.Source = "--" + flag
	} else {
		e.Source, e.Line = v.doc.source, v.doc.lines[path]
	}
	v.errs = append(v.errs, e)
}

// field checks one field by its tags.
func (v *validator) field(f field) {
	value := f.value(v.doc.Agent)
	switch {
	case f.section():
	case f.path == "apiVersion":
		v.constant(f.path, value.String(), APIVersion)
	case f.path == "kind":
		v.constant(f.path, value.String(), Kind)
	case f.tag.Get("enum") != "":
		if allowed := strings.Split(f.tag.Get("enum"), ","); !slices.Contains(allowed, value.String()) {
			v.fail(f.path, "%q is not one of %s", value.String(), strings.Join(allowed, ", "))
		}
	case f.typ == reflect.TypeFor[Duration]():
		v.duration(f, Duration(value.Int()))
	case f.typ.Kind() == reflect.Int:
		v.number(f, int(value.Int()))
	case f.tag.Get("check") == "nodeport":
		v.networks(f.path, value.Interface().([]string), "all", "primary")
	case f.tag.Get("check") == "podnetwork":
		v.networks(f.path, value.Interface().([]string), ClusterCIDRsAuto)
	case f.tag.Get("check") == "externalip":
		v.networks(f.path, value.Interface().([]string), ExternalIPsAuto)
	case f.typ.Kind() == reflect.Slice:
		for i, item := range value.Convert(reflect.TypeFor[[]string]()).Interface().([]string) {
			v.text(f.path+"["+strconv.Itoa(i)+"]", f.tag.Get("check"), item)
		}
	case f.typ.Kind() == reflect.String && value.String() != "":
		v.text(f.path, f.tag.Get("check"), value.String())
	}
}

func (v *validator) constant(path, got, want string) {
	if got != want {
		v.fail(path, "%q is not supported: expected %s", got, want)
	}
}

func (v *validator) duration(f field, got Duration) {
	low, high := mustDuration(f.tag.Get("min")), mustDuration(f.tag.Get("max"))
	if got.Duration() < low || got.Duration() > high {
		v.fail(f.path, "%s is not between %s and %s", got, Duration(low), Duration(high))
	}
}

func (v *validator) number(f field, got int) {
	low, _ := strconv.Atoi(f.tag.Get("min"))
	high, _ := strconv.Atoi(f.tag.Get("max"))
	if got < low || got > high {
		v.fail(f.path, "%d is not between %d and %d", got, low, high)
	}
}

// text checks one string by the name of its check.
func (v *validator) text(path, check, got string) {
	switch check {
	case "cidr":
		if _, err := netip.ParsePrefix(got); err != nil {
			v.fail(path, "%q is not a network in CIDR notation, for example 10.96.0.0/12", got)
		}
	case "ipv4":
		if a, err := netip.ParseAddr(got); err != nil || !a.Is4() {
			v.fail(path, "%q is not an IPv4 address", got)
		} else if a.IsUnspecified() || a.IsMulticast() || a.IsLoopback() {
			v.fail(path, "%s cannot be used as the source of a packet", got)
		}
	case "namespace":
		if !namespaceName.MatchString(got) || len(got) > 63 {
			v.fail(path, "%q is not the name of a namespace", got)
		}
	case "ip":
		if a, err := netip.ParseAddr(got); err != nil || a.Zone() != "" {
			v.fail(path, "%q is not an IP address", got)
		}
	case "port":
		if _, err := rule.ParsePort(got); err != nil {
			v.fail(path, "%q is not a port with its protocol, for example 4789/UDP", got)
		}
	case "url":
		if u, err := url.Parse(got); err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
			port := "2379"
			if strings.HasPrefix(path, "kubernetes.") {
				port = "6443"
			}
			v.fail(path, "%q is not a URL, for example https://10.0.0.1:%s", got, port)
		}
	case "host":
		if _, err := netip.ParseAddr(got); err != nil && !hostName.MatchString(got) {
			v.fail(path, "%q is not the name of a host without a port, for example troupe.example.com", got)
		}
	case "hostport":
		if host, port, err := net.SplitHostPort(got); err != nil || !isPort(port) || !isIPOrName(host) {
			v.fail(path, "%q is not an address with a port, for example 127.0.0.1:9990", got)
		}
	}
}

// namespaceName is a DNS label, without its limit of 63 bytes.
var namespaceName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`)

// hostName is a DNS name. A final dot and underscores are allowed, as in browsers.
var hostName = regexp.MustCompile(`^[A-Za-z0-9_]([-A-Za-z0-9_]*[A-Za-z0-9_])?(\.[A-Za-z0-9_]([-A-Za-z0-9_]*[A-Za-z0-9_])?)*\.?$`)

// networks checks a list of networks that may also be one word alone, or have other words in it.
func (v *validator) networks(path string, got []string, alone string, words ...string) {
	for i, item := range got {
		at := path + "[" + strconv.Itoa(i) + "]"
		switch {
		case item == alone && len(got) > 1:
			v.fail(at, "%q must be the only entry", item)
		case item != alone && !slices.Contains(words, item):
			v.text(at, "cidr", item)
		}
	}
}

// together checks fields that depend on each other.
func (v *validator) together(a *Agent) {
	dir, files := a.Kubernetes.FilesDir()
	switch {
	case files && dir == "":
		v.fail("kubernetes.source", `names no directory: expected "files:DIR"`)
	case !files && a.Kubernetes.Source != SourceKubernetes:
		v.fail("kubernetes.source", `%q is neither "kubernetes" nor "files:DIR"`, a.Kubernetes.Source)
	case files && a.Kubernetes.Kubeconfig != "":
		v.fail("kubernetes.kubeconfig", "has no meaning with source %q", a.Kubernetes.Source)
	case files && len(a.Kubernetes.APIServer) > 0:
		v.fail("kubernetes.apiServer", "has no meaning with source %q", a.Kubernetes.Source)
	}
	if (a.Etcd.Cert == "") != (a.Etcd.Key == "") {
		v.fail("etcd.cert", "cert and key need each other")
	}
	if a.Etcd.Mode != EtcdExternal && len(a.Etcd.Endpoints) > 0 {
		v.fail("etcd.endpoints", "has no meaning with mode %q", a.Etcd.Mode)
	}
	if a.Etcd.Mode == EtcdEmbedded && a.EtcdDataDir() == "" {
		v.fail("etcd.dataDir", `is required with mode "embedded"`)
	}
	if p := a.Etcd.Prefix; !strings.HasPrefix(p, "/") || strings.HasSuffix(p, "/") {
		v.fail("etcd.prefix", "%q must begin with / and not end with it", p)
	}
	if files && a.NodeStore.Type == StoreKubernetes {
		v.fail("nodeStore.type", "%q needs the API server as kubernetes.source", a.NodeStore.Type)
	}
	if a.Renderer == RendererCNAT && a.SNAT.Enabled {
		v.fail("snat.enabled", "needs NAT44, which renderer %q does not use", a.Renderer)
	}
	if a.Renderer == RendererCNAT && a.External.File != "" {
		v.fail("external.file", "needs NAT44, which renderer %q does not use", a.Renderer)
	}
	v.snat(a)
	if (a.HostRoute.Interface == "") != (a.HostRoute.Gateway == "") {
		v.fail("hostRoute.gateway", "interface and gateway need each other")
	} else if _, err := hostroute.ParsePorts(a.HostRoute.NodePorts); err != nil {
		v.fail("hostRoute.nodePorts", "%v", err)
	} else if _, err := a.HostRoute.Keepers(); err != nil {
		v.fail("hostRoute.gateway", "%v", err)
	}
	if a.Addresses.Interval.Duration()%(10*time.Millisecond) != 0 {
		v.fail("addresses.interval", "%s is no multiple of 10ms", a.Addresses.Interval.Duration())
	}
	if files && a.HostRoute.Interface != "" && len(a.Services.ServiceCIDRs) == 0 {
		v.fail("hostRoute.interface", "needs services.serviceCIDRs with source %q", a.Kubernetes.Source)
	}
	if a.VPP.Mode == VPPSocket && a.VPP.APISocket == "" {
		v.fail("vpp.apiSocket", `is required with mode "socket"`)
	}
	if a.API.EnableChaos && a.API.ControlSocket == "" {
		v.fail("api.enableChaos", "needs api.controlSocket")
	}
}

// snat checks the fields of dynamic SNAT.
func (v *validator) snat(a *Agent) {
	if a.SNAT.Address != "" && a.SNAT.Address == a.NAT44.LoopbackIP {
		v.fail("snat.address", "%s is nat44.loopbackIP", a.SNAT.Address)
	}
	for path, value := range map[string]string{"snat.interface": a.SNAT.Interface, "snat.address": a.SNAT.Address} {
		if value != "" && !a.SNAT.Enabled {
			v.fail(path, "has no meaning while snat.enabled is false")
		}
	}
}

func isPort(text string) bool {
	n, err := strconv.ParseUint(text, 10, 16)
	return err == nil && n <= 65535
}

// isIPOrName reports whether a host can be listened on. Other names than localhost would need DNS,
// which may not work yet on a starting node.
func isIPOrName(host string) bool {
	if host == "" || host == "localhost" {
		return true
	}
	_, err := netip.ParseAddr(host)
	return err == nil
}

// mustDuration parses a tag. It panics on an invalid tag, which every test of the package finds.
func mustDuration(text string) time.Duration {
	d, err := time.ParseDuration(text)
	if err != nil {
		panic("config: tag: " + err.Error())
	}
	return d
}
