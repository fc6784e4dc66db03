package namespaces

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"testing"
	"time"
)

// role is the variable by which the program of the tests learns that it is a server or a client in a namespace.
const role = "TROUPE_ROLE"

func TestMain(m *testing.M) {
	play, known := map[string]func(string) error{"serve": serve, "get": get, "udp": exchange, "hold": hold}[os.Getenv(role)]
	if !known {
		os.Exit(m.Run())
	}
	if err := play(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// serve answers HTTP and UDP at two ports with its name and the address of the client.
func serve(name string) error {
	packets, err := net.ListenPacket("udp6", "[::]:5353")
	if err != nil {
		return err
	}
	go func() {
		for b := make([]byte, 100); ; {
			if _, from, err := packets.ReadFrom(b); err == nil {
				_, _ = packets.WriteTo([]byte(name+" saw "+host(from.String())), from)
			}
		}
	}()
	return http.ListenAndServe("[::]:8080", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, name, " saw ", host(r.RemoteAddr))
	}))
}

func host(address string) string {
	h, _, _ := net.SplitHostPort(address)
	return h
}

// get prints what a server answers.
func get(address string) error {
	answer, err := (&http.Client{Timeout: 3 * time.Second}).Get("http://" + address + "/")
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	_, err = io.Copy(os.Stdout, answer.Body)
	return err
}

// exchange is get for UDP.
func exchange(address string) error {
	c, err := net.Dial("udp6", address)
	if err != nil {
		return err
	}
	defer c.Close()
	b := make([]byte, 100)
	_ = c.SetDeadline(time.Now().Add(3 * time.Second)) // fails only without a connection
	if _, err := c.Write([]byte("x")); err != nil {
		return err
	}
	n, err := c.Read(b)
	fmt.Print(string(b[:n]))
	return err
}

// hold keeps one connection, and prints the answer to a request on it for each line of its input.
func hold(address string) error {
	c, err := net.Dial("tcp6", address)
	if err != nil {
		return err
	}
	defer c.Close()
	answers := bufio.NewReader(c)
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		_ = c.SetDeadline(time.Now().Add(3 * time.Second)) // fails only without a connection
		if _, err := fmt.Fprint(c, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
			return err
		}
		answer, err := http.ReadResponse(answers, nil)
		if err != nil {
			return err
		}
		body, err := io.ReadAll(answer.Body)
		if err != nil {
			return err
		}
		fmt.Println(string(body))
	}
	return nil
}
