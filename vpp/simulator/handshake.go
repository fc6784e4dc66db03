package simulator

import (
	"go.fd.io/govpp/binapi/memclnt"
)

// registerMemclnt registers the messages of the API transport itself.
func registerMemclnt(r registry) {
	register(r, classSession, sockclntCreate)
	register(r, classSession, sockclntDelete)
	register(r, classSession, controlPing)
	register(r, classSession, keepalive)
	read(r, apiVersions)
}

// sockclntCreate answers the handshake with the client's index and the
// message table of this incarnation. It may be repeated.
func sockclntCreate(c *call, _ *memclnt.SockclntCreate) {
	reply := &memclnt.SockclntCreateReply{
		MessageTable: c.vpp.inc.ids.entries,
		Count:        uint16(len(c.vpp.inc.ids.entries)),
	}
	if c.client != nil {
		reply.Index = c.client.index
	}
	c.reply(reply)
}

// sockclntDelete answers 1 for a live registration, -1 otherwise, and closes
// the connection that it names.
func sockclntDelete(c *call, req *memclnt.SockclntDelete) {
	target := c.vpp.clients[req.Index]
	if target == nil {
		c.reply(&memclnt.SockclntDeleteReply{Response: -1})
		return
	}
	c.reply(&memclnt.SockclntDeleteReply{Response: 1})
	delete(c.vpp.clients, target.index)
	c.unsubscribe(target.index)
	target.shut()
}

// controlPing answers with the process id of this incarnation.
func controlPing(c *call, _ *memclnt.ControlPing) {
	reply := &memclnt.ControlPingReply{VpePID: c.vpp.inc.pid}
	if c.client != nil {
		reply.ClientIndex = c.client.index
	}
	c.reply(reply)
}

// keepalive is answered although VPP itself never sends it to socket clients.
func keepalive(c *call, _ *memclnt.MemclntKeepalive) {
	c.reply(&memclnt.MemclntKeepaliveReply{})
}

// apiVersions lists the API modules.
func apiVersions(c *call, _ *memclnt.APIVersions) {
	reply := &memclnt.APIVersionsReply{}
	for _, name := range coreAPIs {
		reply.APIVersions = append(reply.APIVersions, memclnt.ModuleVersion{Major: 1, Name: name + ".api"})
	}
	reply.Count = uint32(len(reply.APIVersions))
	c.reply(reply)
}
