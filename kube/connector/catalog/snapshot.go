package catalog

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"
)

// Source is a catalog outside of Kubernetes.
type Source interface {
	// Run publishes snapshots of the source until ctx ends, and returns nil then. It returns an
	// error if no retry can help. Run publishes after each change, and at least every minute, because a
	// repeated snapshot confirms the one before. An unreadable part makes a snapshot incomplete and
	// is a problem in it. One goroutine at a time calls publish, until Run returns; publish does
	// not block long.
	Run(ctx context.Context, publish func(Snapshot)) error
}

// Snapshot is the state of a source at one moment.
type Snapshot struct {
	// Services of the source. After Clean: ordered by name, each name once.
	Services []Service
	// Complete says that a service missing from Services does not exist. After a partial answer it
	// is false: Services may be used, but a missing service may exist.
	Complete bool
	// Repeated says that the source was asked for its services once more and gave the same answer.
	// Only this confirms that services have vanished; a snapshot with a changed instance does not.
	Repeated bool
	// Problems are the parts that were left out, with the reasons.
	Problems []Problem
}

// Equal reports whether both have the same content; Repeated makes no difference.
func (s Snapshot) Equal(other Snapshot) bool {
	return s.Complete == other.Complete && slices.EqualFunc(s.Services, other.Services, Service.equal) && slices.Equal(s.Problems, other.Problems)
}

func (s Service) equal(other Service) bool {
	return s.Name == other.Name && s.Unknown == other.Unknown && slices.Equal(s.Ports, other.Ports) &&
		slices.EqualFunc(s.Instances, other.Instances, Instance.Equal)
}

// Equal reports whether both have the same content.
func (i Instance) Equal(other Instance) bool {
	return i.ID == other.ID && i.Address == other.Address && i.NodeAddress == other.NodeAddress && i.State == other.State && i.Zone == other.Zone &&
		(i.Ports == nil) == (other.Ports == nil) && maps.Equal(i.Ports, other.Ports)
}

// Service is one name of the source.
type Service struct {
	// Name as the source spells it.
	Name string
	// Unknown says that the service exists, but its content could not be read. The objects in the
	// cluster stay unchanged.
	Unknown bool
	// Ports of the service. If empty, the service has the ports that its instances name.
	Ports []Port
	// Instances of the service, healthy or not. If empty, the service is known to have none.
	Instances []Instance
}

// Port is one port of a service.
type Port struct {
	// Name is the name of the port in the instances. Only one port may have the name "".
	Name string
	// Number of the port that clients use; 0 = the number of the instances' port.
	Number uint16
	// Protocol is TCP, UDP or SCTP; "" is TCP.
	Protocol string
}

// Instance is one registration of a service.
type Instance struct {
	// ID names the instance in problems, for example "web-1"; "" if the source has no ID.
	ID string
	// Address is an IP address as the source spells it; host names are refused.
	Address string
	// NodeAddress is used if Address is empty.
	NodeAddress string
	// Ports of this instance by the name of the port. If nil, the instance serves every port of the
	// service under the port's own number. Otherwise it serves only the ports in the map.
	Ports map[string]uint16
	// State says whether the instance serves.
	State State
	// Zone is the topology zone; "" if unknown.
	Zone string
}

// State of an instance. The zero value is Ready.
type State int

// The states, better ones first.
const (
	Ready       State = iota // takes new connections
	NotReady                 // unhealthy
	Terminating              // in maintenance: serves its connections and takes no new ones
)

// Problem is a part of a snapshot that is not used, or used with a change.
type Problem struct {
	// Source is the name of the source, set when several sources are joined.
	Source string
	// Service is the name at the source; "" if the problem concerns the source itself, such as a
	// file.
	Service string
	// Instance is the ID or address of the instance; "" if the problem concerns the whole service.
	Instance string
	// Reason is the class of the problem, fit for a counter.
	Reason Reason
	// Message describes the problem and quotes the wrong value.
	Message string
	// Object is the name of the Service in the cluster to which the problem belongs, and UID its
	// UID; "" if there is no such Service.
	Object, UID string
}

// String returns the problem in one line.
func (p Problem) String() string {
	out := ""
	for _, part := range []string{p.Source, p.Service, p.Instance} {
		if part != "" {
			out += printable(part) + ": "
		}
	}
	return out + p.Message
}

// Reason is a class of problems.
type Reason string

// The reasons other than refused addresses, which are declared with Policy.
const (
	ReasonLimit     Reason = "limit"      // more than the limits allow
	ReasonName      Reason = "name"       // no usable name
	ReasonCollision Reason = "collision"  // another service has this name
	ReasonPort      Reason = "port"       // no usable port
	ReasonSource    Reason = "source"     // the source, or a part of it, could not be read
	ReasonForeign   Reason = "foreign"    // an object that the connector does not own has this name
	ReasonImmutable Reason = "immutable"  // the object would have to be deleted first
	ReasonDuplicate Reason = "duplicated" // occurs twice
)

// Count returns the number of problems by reason.
func Count(problems []Problem) map[Reason]int {
	out := map[Reason]int{}
	for _, p := range problems {
		out[p.Reason]++
	}
	return out
}

// Limits of one source.
type Limits struct {
	// Services of the source.
	Services int
	// Instances of one service.
	Instances int
	// All is the largest number of instances of all services together.
	All int
	// Body is the largest size in bytes of a decompressed answer about one service, and of all
	// files of a source together.
	Body int
	// List is the largest size in bytes of the list of services, decoded as it arrives.
	List int
}

// DefaultLimits are far above the size of usual catalogs, and low enough that a hostile catalog
// cannot exhaust the connector or the API server.
func DefaultLimits() Limits {
	return Limits{Services: 10_000, Instances: 5000, All: 50_000, Body: 8 << 20, List: 64 << 20}
}

// MaxName is the largest length in bytes of a name at the source.
const MaxName = 512

const maxProblems = 1000

// Clean returns the services of the snapshot in order, each name once, within the limits. Services
// without a usable name are left out. A snapshot from which a limit took a service is not complete
// any more. A service above the limit for all instances is unknown. The services of s are not
// changed.
func Clean(s Snapshot, limits Limits) Snapshot {
	out := Snapshot{Complete: s.Complete, Repeated: s.Repeated, Problems: slices.Clone(s.Problems)}
	report := func(service string, reason Reason, format string, args ...any) {
		out.Problems = append(out.Problems, Problem{Service: service, Reason: reason, Message: fmt.Sprintf(format, args...)})
	}
	services := slices.Clone(s.Services)
	slices.SortStableFunc(services, func(a, b Service) int { return strings.Compare(a.Name, b.Name) })
	all := 0 // instances
	for i, service := range services {
		switch {
		case service.Name == "" || len(service.Name) > MaxName || !utf8.ValidString(service.Name):
			report(fmt.Sprintf("%.40q", service.Name), ReasonName, "the name is empty, longer than %d bytes or no text", MaxName)
			continue
		case i > 0 && service.Name == services[i-1].Name:
			report(service.Name, ReasonDuplicate, "occurs twice, the first counts")
			continue
		}
		if n := len(service.Instances); n > limits.Instances {
			report(service.Name, ReasonLimit, "%d instances, at most %d are used", n, limits.Instances)
			service.Instances = slices.Clone(service.Instances)
			slices.SortStableFunc(service.Instances, compareInstances)
			service.Instances = service.Instances[:limits.Instances]
		}
		if all+len(service.Instances) > limits.All {
			report(service.Name, ReasonLimit, "more than %d instances of all services", limits.All)
			service.Unknown, service.Instances = true, nil
		}
		all += len(service.Instances)
		out.Services = append(out.Services, service)
	}
	if n := len(out.Services); n > limits.Services {
		report("", ReasonLimit, "%d services, at most %d are used", n, limits.Services)
		out.Services, out.Complete = out.Services[:limits.Services], false
	}
	if len(out.Problems) > maxProblems {
		out.Problems = out.Problems[:maxProblems]
	}
	return out
}

// compareInstances orders serving instances first, so that a limit removes the others first.
func compareInstances(a, b Instance) int {
	return cmp.Or(cmp.Compare(a.State, b.State), strings.Compare(a.Address+" "+a.ID, b.Address+" "+b.ID))
}

// printable makes a text of the source fit for a log line.
func printable(s string) string {
	const most = 80
	if len(s) > most {
		s = s[:most] + "..."
	}
	for _, r := range s {
		if r < ' ' || r == utf8.RuneError || r == 0x7f {
			return fmt.Sprintf("%q", s)
		}
	}
	return s
}
