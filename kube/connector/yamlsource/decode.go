package yamlsource

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"

	yaml "sigs.k8s.io/yaml/goyaml.v3"

	"github.com/troupe-vpp/troupe/kube/connector/catalog"
)

// The types of a document.
type (
	document struct {
		Services []service `yaml:"services"`
	}
	service struct {
		Name      text       `yaml:"name"`
		Ports     []port     `yaml:"ports"`
		Instances []instance `yaml:"instances"`
	}
	port struct {
		Name     text     `yaml:"name"`
		Port     number   `yaml:"port"`
		Protocol protocol `yaml:"protocol"`
	}
	instance struct {
		Address text              `yaml:"address"`
		Ports   map[string]number `yaml:"ports"`
		Healthy *bool             `yaml:"healthy"` // default: true
		Zone    text              `yaml:"zone"`
	}
)

// text is a string; a number or null in its place is a mistake.
type text string

// UnmarshalYAML satisfies yaml.Unmarshaler.
func (s *text) UnmarshalYAML(node *yaml.Node) error {
	if node.ShortTag() != "!!str" {
		return problem(node, "%.40q is not a string", node.Value)
	}
	*s = text(node.Value)
	return nil
}

// number is the number of a port.
type number uint16

// UnmarshalYAML satisfies yaml.Unmarshaler.
func (n *number) UnmarshalYAML(node *yaml.Node) error {
	var out uint16
	if err := node.Decode(&out); err != nil || out == 0 {
		return problem(node, "%.40q is not a port, 1 to 65535", node.Value)
	}
	*n = number(out)
	return nil
}

// protocol is the protocol of a port.
type protocol string

// UnmarshalYAML satisfies yaml.Unmarshaler.
func (p *protocol) UnmarshalYAML(node *yaml.Node) error {
	switch node.Value {
	case "TCP", "UDP", "SCTP":
		*p = protocol(node.Value)
		return nil
	}
	return problem(node, "%.40q is not one of TCP, UDP, SCTP", node.Value)
}

// problem is an error of one value; the decoder goes on after it.
func problem(node *yaml.Node, format string, args ...any) error {
	return &yaml.TypeError{Errors: []string{fmt.Sprintf("line %d: "+format, append([]any{node.Line}, args...)...)}}
}

// goTypes matches the names of Go types in errors of the decoder, which mean nothing to the user.
var goTypes = regexp.MustCompile(` (in|into) (type )?\[?\]?[\w.*]*yamlsource\.\w+`)

// Decode reads all documents of a file. After an error nothing of the file is used. Each error has
// one line.
func Decode(content []byte) (services []catalog.Service, errs []error) {
	// The parser is large code of another project. A bug in it must not let an input end the
	// connector.
	defer func() {
		if p := recover(); p != nil {
			services, errs = nil, []error{fmt.Errorf("yaml: parser failed: %v", p)}
		}
	}()
	decoder := yaml.NewDecoder(bytes.NewReader(content))
	decoder.KnownFields(true)
	for {
		var d document
		err := decoder.Decode(&d)
		var wrong *yaml.TypeError
		switch {
		case errors.Is(err, io.EOF):
			if len(errs) > 0 {
				services = nil
			}
			return services, errs
		case errors.As(err, &wrong):
			for _, e := range wrong.Errors {
				errs = append(errs, oneLine(goTypes.ReplaceAllString(e, "")))
			}
			continue
		case err != nil: // no YAML: the rest cannot be read
			return nil, append(errs, oneLine(err.Error()))
		}
		for i, s := range d.Services {
			if s.Name == "" {
				errs = append(errs, fmt.Errorf("services[%d]: name is missing", i))
			}
			services = append(services, s.toCatalog())
		}
	}
}

// oneLine returns an error of the decoder in one line. Such an error may quote the file.
func oneLine(text string) error { return errors.New(strings.ReplaceAll(text, "\n", " ")) }

// toCatalog returns the service as a catalog.Service.
func (s *service) toCatalog() catalog.Service {
	out := catalog.Service{Name: string(s.Name)}
	for _, p := range s.Ports {
		out.Ports = append(out.Ports, catalog.Port{Name: string(p.Name), Number: uint16(p.Port), Protocol: string(p.Protocol)})
	}
	for _, i := range s.Instances {
		one := catalog.Instance{Address: string(i.Address), Zone: string(i.Zone)}
		if i.Healthy != nil && !*i.Healthy {
			one.State = catalog.NotReady
		}
		if i.Ports != nil {
			one.Ports = make(map[string]uint16, len(i.Ports))
		}
		for name, n := range i.Ports {
			one.Ports[name] = uint16(n)
		}
		out.Instances = append(out.Instances, one)
	}
	return out
}
