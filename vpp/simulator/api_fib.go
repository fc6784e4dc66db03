package simulator

import (
	"go.fd.io/govpp/binapi/fib"
)

// registerFIB registers the messages of the FIB API.
func registerFIB(r registry) {
	read(r, fibSourceDump)
	write(r, fibSourceAdd)
}

func fibSourceAdd(c *call, req *fib.FibSourceAdd) {
	id := c.sources.add(req.Src.Name, req.Src.Priority)
	c.reply(&fib.FibSourceAddReply{ID: uint8(id)})
}

func fibSourceDump(c *call, _ *fib.FibSourceDump) {
	for _, s := range c.sources.all {
		c.reply(&fib.FibSourceDetails{Src: fib.FibSource{Priority: s.class, ID: uint8(s.id), Name: s.name}})
	}
}
