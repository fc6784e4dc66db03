// Command pod is the program of the pods of the tests. Without arguments it does nothing until it
// is stopped, as the container of a sandbox; with an address it answers each TCP connection there
// with a line that names the pod, and each UDP packet as well. The word agent is no address: the
// program takes the place of an agent and does nothing. A number after the address adds as
// many spaces to the answer to a connection.
//
//	pod ask NETWORK ADDRESS    prints what such a pod answers
package main

import (
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// patience is how long ask waits for an answer.
const patience = 3 * time.Second

func main() {
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM, syscall.SIGINT)
	if len(os.Args) == 4 && os.Args[1] == "ask" {
		if err := ask(os.Args[2], os.Args[3]); err != nil {
			fmt.Fprintln(os.Stderr, "pod:", err)
			os.Exit(1)
		}
		return
	}
	if len(os.Args) > 1 && os.Args[1] != "agent" {
		if err := serve(os.Args[1], os.Args[2:]); err != nil {
			fmt.Fprintln(os.Stderr, "pod:", err)
			os.Exit(1)
		}
	}
	<-stop
}

// ask prints the answer to a connection, or to a packet.
func ask(network, address string) error {
	connection, err := net.DialTimeout(network, address, patience)
	if err != nil {
		return err
	}
	defer connection.Close()
	if err := connection.SetDeadline(time.Now().Add(patience)); err != nil {
		return err
	}
	if network == "tcp" {
		_, err = io.Copy(os.Stdout, connection)
		return err
	}
	if _, err := fmt.Fprintln(connection, "?"); err != nil {
		return err
	}
	answer := make([]byte, 100)
	n, err := connection.Read(answer)
	fmt.Print(string(answer[:n]))
	return err
}

// serve answers at the address until the process ends.
func serve(address string, more []string) error {
	name, err := os.Hostname()
	if err != nil {
		return fmt.Errorf("read host name: %w", err)
	}
	spaces := 0
	if len(more) > 0 {
		if spaces, err = strconv.Atoi(more[0]); err != nil {
			return fmt.Errorf("read number of spaces: %w", err)
		}
	}
	answer := name + "\n" + strings.Repeat(" ", spaces)
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	packets, err := net.ListenPacket("udp", address)
	if err != nil {
		return err
	}
	go func() {
		for question := make([]byte, 100); ; {
			_, from, err := packets.ReadFrom(question)
			if err != nil {
				return
			}
			_, _ = packets.WriteTo([]byte(name+"\n"), from)
		}
	}()
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			_, _ = io.WriteString(connection, answer)
			_ = connection.Close()
		}
	}()
	return nil
}
