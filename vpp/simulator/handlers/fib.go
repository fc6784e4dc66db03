package handlers

import "go.fd.io/govpp/binapi/fib"

// registerFIB registers the messages of the FIB API.
func registerFIB(r Registry) {
	Read(r, fibSourceDump)
	write(r, fibSourceAdd)
}

// fibSourceAdd registers a source, also under a name that is taken: a client has to look for its
// own sources before it adds them.
func fibSourceAdd(c *Call, req *fib.FibSourceAdd) {
	id := c.Sources.Add(req.Src.Name, req.Src.Priority)
	c.Reply(&fib.FibSourceAddReply{ID: uint8(id)})
}

// fibSourceDump lists all sources with the priority under which they were registered.
func fibSourceDump(c *Call, _ *fib.FibSourceDump) {
	for _, s := range c.Sources.All {
		c.Reply(&fib.FibSourceDetails{Src: fib.FibSource{Priority: s.Class, ID: uint8(s.ID), Name: s.Name}})
	}
}
