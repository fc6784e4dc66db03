package yamlsource

import (
	"slices"
	"strconv"
	"strings"

	"github.com/troupe-vpp/troupe/kube/connector/catalog"
	"github.com/troupe-vpp/troupe/kube/strictyaml"
)

// expansion is the number of nodes that aliases and merges may add to all documents of a file.
const expansion = 400_000

// Decode reads all documents of a file. After an error nothing of the file is used. Each error has
// one line.
func Decode(content []byte) (services []catalog.Service, errs []error) {
	documents, problem := strictyaml.Parse(content)
	budget := strictyaml.Budget(expansion)
	d := &strictyaml.Decoder{Budget: &budget, NullKeeps: true}
	for _, document := range documents {
		budget += strictyaml.Size(document)
		var more []catalog.Service
		d.Read(document.Content[0], "", strictyaml.Object(map[string]strictyaml.Value{"services": strictyaml.List(&more, service)}))
		services = append(services, more...)
	}
	if problem != nil { // no YAML: the rest cannot be read
		d.Problems = append(d.Problems, problem)
	}
	for _, p := range d.Sorted() {
		services, errs = nil, append(errs, p)
	}
	return services, errs
}

func service(s *catalog.Service) strictyaml.Value {
	fields := strictyaml.Object(map[string]strictyaml.Value{
		"name": strictyaml.Text(&s.Name), "ports": strictyaml.List(&s.Ports, port), "instances": strictyaml.List(&s.Instances, instance),
	})
	return func(d *strictyaml.Decoder, n *strictyaml.Node, path string) {
		before := len(d.Problems)
		if fields(d, n, path); s.Name == "" && len(d.Problems) == before {
			d.Fail(n.Line, path, "name is missing")
		}
	}
}

func port(p *catalog.Port) strictyaml.Value {
	return strictyaml.Object(map[string]strictyaml.Value{
		"name": strictyaml.Text(&p.Name), "port": number(func(n uint16) { p.Number = n }),
		"protocol": strictyaml.Scalar("one of TCP, UDP, SCTP", func(text string) bool {
			p.Protocol = text
			return slices.Contains([]string{"TCP", "UDP", "SCTP"}, text)
		}, "!!str"),
	})
}

func instance(i *catalog.Instance) strictyaml.Value {
	ports := strictyaml.Map(func(name string) strictyaml.Value {
		return number(func(n uint16) { i.Ports[name] = n })
	})
	return strictyaml.Object(map[string]strictyaml.Value{
		"address": strictyaml.Text(&i.Address), "zone": strictyaml.Text(&i.Zone),
		"ports": func(d *strictyaml.Decoder, n *strictyaml.Node, path string) {
			i.Ports = map[string]uint16{} // also of an instance without ports: it serves none
			ports(d, n, path)
		},
		"healthy": strictyaml.Scalar("true or false", func(text string) bool {
			// also as YAML 1.1 wrote booleans
			at := slices.Index([]string{"true", "y", "yes", "on", "false", "n", "no", "off"}, strings.ToLower(text))
			if at >= 4 {
				i.State = catalog.NotReady
			}
			return at >= 0
		}, "!!bool", "!!str"),
	})
}

// number reads the number of a port.
func number(set func(uint16)) strictyaml.Value {
	return strictyaml.Scalar("a port, 1 to 65535", func(text string) bool {
		n, err := strconv.ParseUint(text, 0, 16)
		set(uint16(n))
		return err == nil && n > 0
	}, "!!int")
}
