package actors_test

import (
	"flag"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/troupe-vpp/troupe/actors"
	"github.com/troupe-vpp/troupe/actors/actorstest"
	"github.com/troupe-vpp/troupe/actors/actorstest/probe"
	"github.com/troupe-vpp/troupe/actors/address"
	"github.com/troupe-vpp/troupe/kube"
	"github.com/troupe-vpp/troupe/kube/files"
	"github.com/troupe-vpp/troupe/kube/normalize"
	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/cnat"
	"github.com/troupe-vpp/troupe/vpp/realvpp"
	"github.com/troupe-vpp/troupe/vpp/routes"
	"github.com/troupe-vpp/troupe/vpp/simulator"
)

var update = flag.Bool("update", false, "write the rows that VPP holds into the stories")

// TestStories plays the stories in testdata: what happens to a node, as commands, with the objects
// and the rows of VPP as files beside them.
//
//	apply FILE...        the cluster has these objects, as kubectl prints them
//	accept FILE...       the same, with something in them that cannot be used
//	delete KIND KEY      it has not this one any more
//	limits A B           the agent serves up to A frontends of a service and B of a namespace;
//	                     before start
//	listens PORT...      processes of the node listen on these ports, "9100/TCP"; before start
//	start, stop          the agent
//	kill PATH            an actor dies
//	crash                VPP dies and comes back empty
//	foreign add VIP      another client puts a row into VPP, "ip:port/TCP"
//	foreign remove VIP   and removes it, or a row of the agent
//	foreign alter VIP    puts other backends behind a row of the agent
//	foreign forge VIP    adds a row that looks like one of the agent
//	verify               the drift check
//	refuse MESSAGE N     VPP refuses the next N messages of that name
//	healed PART STEP N   the healer counts so many of that step
//	iface NAME           an interface is added to VPP, up, without address and routes
//	net NAME ADDRESS...  an interface is added to VPP, up: of a network, "ip/len" with VPP's
//	                     address, or with a host behind it, "ip"
//	unreachable NETWORK  another owner's route in VPP answers packets to it with ICMP
//	attach POD IFACE     a command says that it is that of a pod, and the answer is that it has
//	                     its roles
//	detach POD           and takes that back
//	denied POD IFACE WHY the answer is why not, and nothing has changed
//	roles IFACE yes|no   VPP has given it its roles
//	rows FILE            VPP holds these rows (-update: writes them)
//	translations FILE    it holds these translations of CNAT (-update: writes them)
//	lists FILE           VPP holds these access lists (-update: writes them)
//	packet IN SRC DST TO a TCP packet that enters there gets to TO: an address, or "unchanged"
//	                     where it is sent on without a translation, or "local" (to VPP itself),
//	                     "rejected" (with an ICMP error), "dropped"; with another word, the
//	                     address that its source has then
//	dial NAME IN SRC DST TO  a TCP connection that enters there is opened and leads to TO
//	open NAME, ended NAME    packets of it and their answers still arrive, or do not
//	routes FILE          it holds these routes of the agent (-update: writes them)
//	writes N             so many messages changed VPP since the last time this was asked; * = it
//	                     does not matter how many
//	calls MESSAGE N      VPP has received N messages of that name, since the beginning
//	says KEY TEXT        the status of the service has this text in an error, an approximation or
//	                     what is not rendered
//	conflict KEY OWNER   the service is shown as having lost an address to that owner; without an
//	                     owner, as having lost none
func TestStories(t *testing.T) {
	playStories(t, "testdata/*.txtar")
}

// TestTenants plays the stories of a tenant who may write Services and EndpointSlices in one
// namespace and tries to harm the others. The language is the language of TestStories.
func TestTenants(t *testing.T) { playStories(t, "testdata/tenants/*.txtar") }

func playStories(t *testing.T, pattern string) {
	stories, err := filepath.Glob(pattern)
	if err != nil || len(stories) == 0 {
		t.Fatalf("no stories: %v", err)
	}
	for _, path := range stories {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txtar"), func(t *testing.T) {
			t.Parallel()
			archive, err := txtar.ParseFile(path)
			if err != nil {
				t.Fatal(err)
			}
			s := newStory(t, archive, actorstest.New(t, nodeOf(filepath.Base(path))))
			s.plane = simulated{s.world.VPP}
			s.play()
			if *update {
				if err := os.WriteFile(path, txtar.Format(archive), 0o644); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// nodeOf is the node of a story. A story whose name begins with dual has IPv6, which CNAT serves.
// In a story whose name begins with cnat, CNAT serves IPv4 as well.
func nodeOf(name string) actorstest.Config {
	both := strings.HasPrefix(name, "cnat")
	return actorstest.Config{IPv6: both || strings.HasPrefix(name, "dual"), CNAT: both}
}

// TestDualOnRealVPP plays the stories of a node that has IPv6 on a real VPP.
func TestDualOnRealVPP(t *testing.T) {
	onRealVPP(t, true, "dual", "dual-restart", "dual-others")
}

// TestCNATOnRealVPP plays the stories of a node whose services CNAT serves in both families, with
// packets of IPv4.
func TestCNATOnRealVPP(t *testing.T) {
	onRealVPP(t, false, "cnat", "cnat-others")
}

// onRealVPP plays stories in testdata on a real VPP. Its interfaces pass packets of one address
// family.
func onRealVPP(t *testing.T, ip6 bool, names ...string) {
	binary, plugins, why := realvpp.Find()
	if why != "" {
		t.Skip(why)
	}
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			archive, err := txtar.ParseFile("testdata/" + name + ".txtar")
			if err != nil {
				t.Fatal(err)
			}
			vpp := realvpp.Start(t, binary, plugins)
			plane := furnish(t, vpp, ip6)
			node := nodeOf(name)
			node.Socket = vpp.Socket()
			s := newStory(t, archive, actorstest.New(t, node))
			s.plane = plane
			s.play()
		})
	}
}

// TestTenantsOnRealVPP plays the stories about addresses of others, the room in access lists, ports
// of others and shared endpoints on a real VPP.
func TestTenantsOnRealVPP(t *testing.T) {
	onRealVPP(t, false, "tenants/01-external-addresses", "tenants/02-no-room", "tenants/03-cluster-ip", "tenants/03-node-ports", "tenants/08-shared-endpoint")
}

func newStory(t *testing.T, archive *txtar.Archive, world *actorstest.World) *story {
	return &story{T: t, world: world, archive: archive, connections: map[string]connection{}, aliases: map[string]string{}}
}

// story is one script on its node.
type story struct {
	*testing.T
	world   *actorstest.World
	archive *txtar.Archive
	writes  uint64 // counted when it was asked last
	port    uint16 // of the last packet
	line    string
	// connections are the open connections, by their names.
	connections map[string]connection
	plane       plane
	// aliases are the names in VPP of interfaces that the story has added.
	aliases map[string]string
}

func (s *story) play() {
	for line := range strings.Lines(string(s.archive.Comment)) {
		s.line = strings.TrimSpace(line)
		words := strings.Fields(s.line)
		if len(words) > 0 && !strings.HasPrefix(words[0], "#") {
			s.run(words[0], words[1:])
		}
	}
}

func (s *story) run(command string, args []string) {
	commands := map[string]struct {
		args int // -1 = any number
		do   func(args []string)
	}{
		"apply":        {-1, s.apply},
		"accept":       {-1, s.accept},
		"delete":       {2, func(args []string) { s.delete(args[0], args[1]) }},
		"limits":       {2, func(args []string) { s.limits(args[0], args[1]) }},
		"listens":      {-1, s.listens},
		"start":        {0, func([]string) { s.world.Start() }},
		"stop":         {0, func([]string) { s.world.Stop() }},
		"kill":         {1, func(args []string) { s.world.Kill(args[0]) }},
		"crash":        {0, func([]string) { s.crash() }},
		"foreign":      {2, func(args []string) { s.foreign(args[0], args[1]) }},
		"verify":       {0, func([]string) { s.verify() }},
		"rows":         {1, func(args []string) { s.state(args[0], s.heldRows) }},
		"translations": {1, func(args []string) { s.state(args[0], s.heldTranslations) }},
		"lists":        {1, func(args []string) { s.state(args[0], s.heldLists) }},
		"packet":       {-1, s.packet},
		"dial":         {5, func(args []string) { s.dial(args[0], args[1], args[2], args[3], args[4]) }},
		"open":         {1, func(args []string) { s.exchange(args[0], true) }},
		"ended":        {1, func(args []string) { s.exchange(args[0], false) }},
		"routes":       {1, func(args []string) { s.state(args[0], s.heldRoutes) }},
		"drained":      {0, func([]string) { s.drained() }},
		"calls":        {2, func(args []string) { s.calls(args[0], args[1]) }},
		"writes":       {1, func(args []string) { s.countWrites(args[0]) }},
		"conflict":     {-1, s.conflict},
		"says":         {-1, s.says},
		"refuse":       {2, func(args []string) { s.refuse(args[0], args[1]) }},
		"healed":       {3, func(args []string) { s.healed(args[0], args[1], args[2]) }},
		"iface":        {1, func(args []string) { s.iface(args[0]) }},
		"net":          {-1, s.net},
		"unreachable":  {1, func(args []string) { s.unreachable(args[0]) }},
		"attach":       {2, func(args []string) { s.attach(args[0], args[1]) }},
		"detach":       {1, func(args []string) { s.attach(args[0], "") }},
		"denied":       {3, func(args []string) { s.denied(args[0], args[1], args[2]) }},
		"roles":        {2, func(args []string) { s.roles(args[0], args[1]) }},
	}
	c, known := commands[command]
	if !known || c.args >= 0 && len(args) != c.args {
		s.Fatalf("%s: not a command of stories", s.line)
	}
	c.do(args)
}

// file finds a file of the archive.
func (s *story) file(name string) *txtar.File {
	for i := range s.archive.Files {
		if s.archive.Files[i].Name == name {
			return &s.archive.Files[i]
		}
	}
	s.Fatalf("%s: there is no file %s", s.line, name)
	return nil
}

func (s *story) apply(names []string) {
	for _, name := range names {
		objects, problems := files.Decode(strings.NewReader(string(s.file(name).Data)), name)
		if len(problems) > 0 {
			s.Fatalf("%s: %v", s.line, problems)
		}
		s.world.Source.Apply(objects)
	}
}

// accept delivers objects with their problems, as a source does.
func (s *story) accept(names []string) {
	for _, name := range names {
		objects, problems := files.Decode(strings.NewReader(string(s.file(name).Data)), name)
		if len(problems) == 0 {
			s.Fatalf("%s: everything in it can be used", s.line)
		}
		about := func(kind, key string) []*messages.ObjectError {
			return slices.DeleteFunc(slices.Clone(problems), func(p *messages.ObjectError) bool { return p.GetKind() != kind || p.GetObject() != key })
		}
		s.world.Source.Change(func(store *kube.Store) {
			for _, one := range objects.Services {
				store.Set(one, about(normalize.KindService, normalize.ServiceKey(one)))
			}
			for _, one := range objects.Slices {
				store.Set(one, about(normalize.KindEndpointSlice, normalize.SliceKey(one)))
			}
		})
	}
}

func (s *story) listens(ports []string) {
	s.world.Config.Deps = func(d *actors.Deps) { d.Listening = func(time.Time) []string { return ports } }
}

func (s *story) limits(ofService, ofNamespace string) {
	limits := &s.world.Serving.Limits
	for limit, text := range map[*int]string{&limits.Service.Frontends: ofService, &limits.Namespace.Frontends: ofNamespace} {
		n, err := strconv.Atoi(text)
		if err != nil {
			s.Fatalf("%s: %v", s.line, err)
		}
		*limit = n
	}
}

func (s *story) delete(kind, key string) {
	s.world.Source.Change(func(store *kube.Store) {
		switch kind {
		case normalize.KindService:
			store.Delete(normalize.KindService, key)
		case normalize.KindEndpointSlice:
			store.Delete(normalize.KindEndpointSlice, key)
		default:
			s.Errorf("%s: cannot delete a %s", s.line, kind)
		}
	})
}

func (s *story) crash() {
	s.plane.crash(func() { s.world.Await(s.line, func() bool { return !s.world.Readiness.Load().Ready }) })
}

func (s *story) verify() {
	s.world.System.Send(s.world.System.PID(address.Renderer("nat44")), &messages.Verify{Reason: "story"})
}

func (s *story) foreign(what, vip string) {
	where, protocol, _ := strings.Cut(vip, "/")
	at, err := netip.ParseAddrPort(where)
	if err != nil {
		s.Fatalf("%s: %v", s.line, err)
	}
	proto := uint8(messages.Protocol_value[protocol])
	if what == "alter" {
		s.foreign("remove", vip)
		what = "forge"
	}
	var retval int32
	if tag := map[string]string{"add": "theirs", "forge": "troupe/spkmuihwv64l2gc3/a0"}[what]; tag != "" {
		backends := []simulator.Backend{
			{Addr: netip.MustParseAddrPort("10.9.9.1:80"), Weight: 1}, {Addr: netip.MustParseAddrPort("10.9.9.2:80"), Weight: 1},
		}
		retval, err = s.world.VPP.ForeignAdd(simulator.ForeignRow{VIP: at, Proto: proto, Tag: tag, Backends: backends})
	} else {
		retval, err = s.world.VPP.ForeignRemove(at, proto)
	}
	if err != nil || retval != 0 {
		s.Fatalf("%s: %d, %v", s.line, retval, err)
	}
}

// shown are the rows in VPP with the backends that new connections reach; others are there for
// connections that drain.
func (s *story) shown() (rows []string) {
	for _, row := range s.world.VPP.Rows() {
		if text, serves := probe.Serving(row); serves {
			rows = append(rows, text)
		}
	}
	return rows
}

// drained waits until VPP holds no endpoint that only keeps its connections.
func (s *story) drained() {
	s.world.Await(s.line, func() bool {
		return !slices.ContainsFunc(s.world.VPP.Rows(), func(row string) bool { return len(probe.Draining(row)) > 0 })
	})
}

func (s *story) heldRows() string { return strings.Join(append(s.shown(), ""), "\n") }

// heldTranslations are the translations of CNAT.
func (s *story) heldTranslations() string {
	state, err := cnat.Read(s.Context(), s.world.Deps.Link, s.world.CNAT, nil, nil)
	if err != nil {
		return err.Error()
	}
	lines := []string{}
	for key, held := range state.Rows {
		balance := ""
		if held.Sticky {
			balance = "maglev-by-source "
		}
		lines = append(lines, fmt.Sprintf("%s %s%v\n", key, balance, held.Backends))
	}
	slices.Sort(lines)
	return strings.Join(lines, "")
}

// heldLists is the part of VPP's state about access lists. It has their tags instead of their
// numbers, which depend on earlier lists.
func (s *story) heldLists() string {
	_, section, _ := strings.Cut("\n"+s.world.VPP.State(), "\nacls\n")
	tags := map[string]string{}
	var lines []string
	for line := range strings.Lines(section) {
		words := strings.Fields(line)
		switch {
		case !strings.HasPrefix(line, " "):
			section = ""
		case section == "":
		case strings.HasPrefix(words[1], `"`):
			tags[words[0]] = strings.Trim(words[1], `"`)
		case words[1] == "rule":
			lines = append(lines, tags[words[0]]+": "+strings.Join(words[3:], " "))
		case words[0] == "on":
			list := strings.Fields(strings.NewReplacer("[", " ", "]", " ").Replace(strings.Join(words[2:], " ")))
			for i, word := range list {
				if tag := tags[word]; tag != "" {
					list[i] = tag
				}
			}
			lines = append(lines, "on "+words[1]+": "+strings.Join(list, " "))
		}
	}
	slices.Sort(lines)
	return strings.Join(append(lines, ""), "\n")
}

// heldRoutes are the agent's routes.
func (s *story) heldRoutes() string {
	state, err := routes.Read(s.Context(), s.world.Deps.Link, nil, nil)
	if err != nil {
		return err.Error()
	}
	lines := []string{}
	for place, kind := range state.Routes {
		lines = append(lines, fmt.Sprintf("%s %s\n", place.Prefix, kind))
	}
	slices.Sort(lines)
	return strings.Join(lines, "")
}

// state compares VPP with a file.
func (s *story) state(name string, held func() string) {
	file := s.file(name)
	if *update {
		s.world.Quiet()
		file.Data = []byte(held())
		return
	}
	s.world.Await(fmt.Sprintf("%s:\n%s", s.line, file.Data), func() bool { return held() == string(file.Data) })
	s.world.Settled()
}

// packet sends one when everything has come to rest.
func (s *story) packet(args []string) {
	if len(args) != 4 && len(args) != 5 {
		s.Fatalf("%s: want an interface, two addresses, where it gets to and perhaps its source there", s.line)
	}
	s.world.Quiet()
	to, want := netip.MustParseAddrPort(args[2]), args[3]
	v, got := s.plane.send(args[0], s.client(args[1]), to)
	switch {
	case got == vanished && slices.Contains([]string{"local", "dropped", "rejected"}, want):
		got = want
	case got == "" && v.Dst == to:
		got = "unchanged"
	case got == "":
		got = v.Dst.String()
	}
	if got != want {
		s.Errorf("%s: it gets to %s: %s", s.line, got, v)
	}
	if len(args) == 5 && v.Src.Addr().String() != args[4] {
		s.Errorf("%s: it comes from %s: %s", s.line, v.Src, v)
	}
}

// countWrites compares the number of messages that have changed VPP since the last count with a
// number, or several in between "|"; "*" is any.
func (s *story) countWrites(want string) {
	s.world.Quiet()
	now := s.world.VPP.Counters()
	if n := now.Mutating() - s.writes; want != "*" && !slices.Contains(strings.Split(want, "|"), strconv.FormatUint(n, 10)) {
		s.Errorf("%s: %d messages changed VPP:\n%s", s.line, n, now.String())
	}
	s.writes = now.Mutating()
}

// says waits until the status of a service has a text in its problems, or in what a renderer says
// of it.
func (s *story) says(args []string) {
	key, text := args[0], strings.Join(args[1:], " ")
	s.world.Await(s.line, func() bool {
		status := s.world.Statuses()[key]
		said := fmt.Sprint(status.GetErrors())
		for _, r := range status.GetRenders() {
			said += fmt.Sprint(r.GetError(), r.GetApproximations(), r.GetUnrendered())
		}
		return strings.Contains(said, text)
	})
}

func (s *story) calls(message, want string) {
	s.world.Await(s.line, func() bool {
		now := s.world.VPP.Counters()
		return strconv.FormatUint(now.Of(message), 10) == want
	})
}

func (s *story) conflict(args []string) {
	if len(args) == 0 || len(args) > 2 {
		s.Fatalf("%s: want a service and perhaps an owner", s.line)
	}
	s.world.Await(s.line, func() bool {
		var owners []string
		for _, r := range s.world.Statuses()[args[0]].GetRenders() {
			for _, c := range r.GetConflicts() {
				owners = append(owners, c.GetOwner())
			}
		}
		return len(owners) == len(args)-1 && (len(args) == 1 || strings.HasPrefix(owners[0], args[1]))
	})
}
