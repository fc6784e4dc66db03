// Command troupe is a Kubernetes node agent that makes FD.io VPP serve the Services of the cluster.
package main

import (
	"os"

	"github.com/troupe-vpp/troupe/bootstrap"
)

func main() {
	os.Exit(bootstrap.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
