// Command pod is the program of the pods of the tests. Without arguments it does nothing until it
// is stopped, as the container of a sandbox; with an address it answers each TCP connection there
// with a line that names the pod.
package main

import (
	"fmt"
	"net"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM, syscall.SIGINT)
	if len(os.Args) > 1 {
		if err := serve(os.Args[1]); err != nil {
			fmt.Fprintln(os.Stderr, "pod:", err)
			os.Exit(1)
		}
	}
	<-stop
}

// serve answers at the address until the process ends.
func serve(address string) error {
	name, err := os.Hostname()
	if err != nil {
		return fmt.Errorf("read host name: %w", err)
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			fmt.Fprintln(connection, name)
			_ = connection.Close()
		}
	}()
	return nil
}
