package simulator

import (
	"go.fd.io/govpp/binapi/memclnt"

	"github.com/troupe-vpp/troupe/vpp/simulator/handlers"
	"github.com/troupe-vpp/troupe/vpp/simulator/pool"
	"github.com/troupe-vpp/troupe/vpp/simulator/wire"
)

// registerMemclnt registers the messages of the API transport itself.
func (v *VPP) registerMemclnt(r handlers.Registry) {
	handlers.Register(r, handlers.ClassSession, v.sockclntCreate)
	handlers.Register(r, handlers.ClassSession, v.sockclntDelete)
	handlers.Register(r, handlers.ClassSession, controlPing)
	handlers.Register(r, handlers.ClassSession, keepalive)
	handlers.Read(r, apiVersions)
}

// sockclntCreate answers the handshake with the client's index and the message table of this
// incarnation. It may be repeated.
func (v *VPP) sockclntCreate(c *handlers.Call, _ *memclnt.SockclntCreate) {
	reply := &memclnt.SockclntCreateReply{
		MessageTable: v.inc.ids.Entries,
		Count:        uint16(len(v.inc.ids.Entries)),
	}
	if c.Client != pool.None {
		reply.Index = c.Client
	}
	c.Reply(reply)
}

// sockclntDelete answers 1 for a live registration, -1 otherwise, and closes the connection that it
// names.
func (v *VPP) sockclntDelete(c *handlers.Call, req *memclnt.SockclntDelete) {
	target := v.clients[req.Index]
	if target == nil {
		c.Reply(&memclnt.SockclntDeleteReply{Response: -1})
		return
	}
	c.Reply(&memclnt.SockclntDeleteReply{Response: 1})
	delete(v.clients, target.index)
	c.Unsubscribe(target.index)
	target.shut()
}

// controlPing answers with the process id of this incarnation.
func controlPing(c *handlers.Call, _ *memclnt.ControlPing) {
	reply := &memclnt.ControlPingReply{VpePID: c.Pid}
	if c.Client != pool.None {
		reply.ClientIndex = c.Client
	}
	c.Reply(reply)
}

// keepalive is answered although VPP itself never sends it to socket clients.
func keepalive(c *handlers.Call, _ *memclnt.MemclntKeepalive) {
	c.Reply(&memclnt.MemclntKeepaliveReply{})
}

// apiVersions lists the API modules.
func apiVersions(c *handlers.Call, _ *memclnt.APIVersions) {
	reply := &memclnt.APIVersionsReply{}
	for _, name := range wire.CoreAPIs {
		reply.APIVersions = append(reply.APIVersions, memclnt.ModuleVersion{Major: 1, Name: name + ".api"})
	}
	reply.Count = uint32(len(reply.APIVersions))
	c.Reply(reply)
}
