package catalog

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// entry is one element of an answer of /v1/health/service.
type entry struct {
	Node    struct{ Address string }
	Service struct {
		ID, Address string
		Port        int
		Tags        []string
	}
	Checks []struct{ CheckID, Status string }
}

// found is the decoded content of a service.
type found struct {
	instances []Instance
	foreign   bool // its tags keep every instance from being used
	// Consul has no instance of the service. Each name in a list of Consul has one, so the last
	// list is older than this answer. Only a list says that a service is gone.
	absent bool
}

func (f found) equal(other found) bool {
	return f.foreign == other.foreign && f.absent == other.absent && slices.EqualFunc(f.instances, other.instances, Instance.Equal)
}

// decodeNames returns the names in an answer of /v1/catalog/services, ordered. It leaves out Consul
// itself and names that cannot be a segment of a path. If there are too many, it returns the first
// names with an error; Consul orders them.
func decodeNames(a *answer, most int) ([]string, error) {
	names := map[string]bool{}
	err := a.walk("services", '{', func(d *json.Decoder) error {
		key, err := d.Token()
		if err != nil {
			return err
		}
		var tags []string
		if err := d.Decode(&tags); err != nil {
			return err
		}
		name := kept(key.(string), keptName)
		switch {
		case name == "" || name == "." || name == ".." || strings.EqualFold(name, "consul") || names[name]:
		case len(names) == most:
			return errTooMany
		default:
			names[name] = true
		}
		return nil
	})
	switch {
	case errors.Is(err, errTooMany):
		err = fmt.Errorf("more than %d services, the first ones are used", most)
	case err != nil:
		return nil, err
	}
	return slices.Sorted(maps.Keys(names)), err
}

// errTooMany ends the decoding.
var errTooMany = own("too many")

// keptName is the number of kept bytes of a name: one more than allowed, so that catalog.Clean
// refuses longer names.
const keptName = MaxName + 1

// decodeInstances returns the service in an answer of /v1/health/service.
func decodeInstances(a *answer, o *ConsulOptions) (found, error) {
	out := found{absent: true}
	err := each(a, "instances", func(e entry) error {
		out.absent = false
		switch {
		case e.Service.Port < 0 || e.Service.Port > 65535:
			return own("Service.Port is no port")
		case o.Tag != "" && !slices.Contains(e.Service.Tags, o.Tag) || o.ExcludedTag != "" && slices.Contains(e.Service.Tags, o.ExcludedTag):
			return nil
		case len(out.instances) == o.Limits.Instances:
			return own("more than %d instances", o.Limits.Instances)
		}
		i := Instance{
			ID: kept(e.Service.ID, keptText), Address: kept(e.Service.Address, keptText), NodeAddress: kept(e.Node.Address, keptText),
			State: stateOf(e), Ports: map[string]uint16{},
		}
		if e.Service.Port != 0 {
			i.Ports[""] = uint16(e.Service.Port)
		}
		out.instances = append(out.instances, i)
		return nil
	})
	if err != nil {
		return found{}, err
	}
	out.foreign = !out.absent && len(out.instances) == 0
	return out, nil
}

// stateOf returns the state that follows from the worst check; maintenance counts first.
func stateOf(e entry) State {
	state := Ready
	for _, c := range e.Checks {
		switch {
		case c.CheckID == "_node_maintenance" || strings.HasPrefix(c.CheckID, "_service_maintenance:"):
			return Terminating
		case c.Status != "passing" && c.Status != "warning":
			state = NotReady
		}
	}
	return state
}

const (
	small     = 64 << 10 // decoded bytes of an answer that may be read without a turn
	turns     = 2        // larger answers read at the same time
	partBytes = 1 << 20  // decoded bytes of one element, which is in memory as a whole
	keptText  = 128      // kept bytes of a text in an answer, except of a name
)

// answer reads the decompressed body of an answer as it arrives. It limits the bytes of the answer
// and of one element. An answer that is not small waits for a turn. So all answers under way share
// one memory budget: each connection has "small" bytes, and only an answer with a turn has more.
type answer struct {
	ctx   context.Context
	in    io.Reader
	turns chan struct{} // holds one token for each taken turn
	most  int           // bytes
	read  int
	part  int // bytes of the current element
	large bool
}

func (a *answer) Read(p []byte) (int, error) {
	if !a.large && a.read+len(p) > small {
		select {
		case a.turns <- struct{}{}:
			a.large = true
		case <-a.ctx.Done():
			return 0, a.ctx.Err()
		}
	}
	p = p[:min(len(p), a.most-a.read+1, partBytes-a.part+1)]
	n, err := a.in.Read(p)
	a.read += n
	a.part += n
	switch {
	case a.read > a.most:
		return 0, own("the answer is too large: more than %d bytes", a.most)
	case a.part > partBytes:
		return 0, own("an element of the answer is too large: more than %d bytes", partBytes)
	}
	return n, err
}

// close gives the turn back.
func (a *answer) close() {
	if a.large {
		<-a.turns
	}
}

// walk decodes the elements of the answer, which is an array or an object, and calls step for each.
// It holds one element at a time, and ends with the first error.
func (a *answer) walk(what string, open json.Delim, step func(*json.Decoder) error) error {
	d := json.NewDecoder(a)
	err := a.begin(d, open)
	for n := 1; err == nil && d.More(); n++ {
		a.part = 0
		if err = step(d); err != nil {
			err = own("element %d: %w", n, harmless(err))
		}
	}
	if err == nil {
		err = a.end(d)
	}
	if err != nil {
		return fmt.Errorf("decode the %s: %w", what, harmless(err))
	}
	return nil
}

// begin reads the opening bracket.
func (*answer) begin(d *json.Decoder, open json.Delim) error {
	token, err := d.Token()
	switch {
	case err != nil:
		return err
	case token == nil:
		return own("the answer is null")
	case token != open:
		return own("the answer does not begin with %s", open)
	}
	return nil
}

// end reads the closing bracket, after which nothing may follow.
func (*answer) end(d *json.Decoder) error {
	if _, err := d.Token(); err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return err
	}
	_, err := d.Token()
	switch {
	case err == nil:
		return own("more follows after the answer")
	case errors.Is(err, io.EOF):
		return nil
	}
	return err
}

// each calls take with each element of an answer that is an array.
func each[T any](a *answer, what string, take func(T) error) error {
	return a.walk(what, '[', func(d *json.Decoder) error {
		var one T
		if err := d.Decode(&one); err != nil {
			return err
		}
		return take(one)
	})
}

// kept returns the beginning of a text, without keeping the rest in memory.
func kept(text string, most int) string { return strings.Clone(text[:min(len(text), most)]) }
