package namespaces

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// role is the variable by which the program of the tests learns that it is a server or a client in
// a namespace.
const role = "TROUPE_ROLE"

func TestMain(m *testing.M) {
	play, known := map[string]func(string) error{"serve": serve, "get": get, "udp": exchange, "hold": hold, "many": many, "lead": lead, "peer": playPeer, "watch": watch}[os.Getenv(role)]
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
	packets, err := net.ListenPacket("udp", ":5353")
	if err != nil {
		return err
	}
	go func() {
		for b := make([]byte, 2*large); ; {
			if n, from, err := packets.ReadFrom(b); err == nil { // the answer is at least as long
				_, _ = packets.WriteTo(fmt.Appendf(nil, "%-*s", n, name+" saw "+host(from.String())), from)
			}
		}
	}()
	return http.ListenAndServe(":8080", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		length := 0
		if r.URL.Path == "/large" {
			length = long
		}
		fmt.Fprintf(w, "%-*s", length, name+" saw "+host(r.RemoteAddr))
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

// many keeps connections, as its argument "address number port" says. Each connection has the next
// port: VPP leads the first packet of one from the port of a session that it still has where that
// led, and one that reaches the same server through another service gets its answers. For each line
// of its input it prints one:
//
//	use NAME...         a request on each connection, except those to the named servers => cut N
//	new ADDRESS NUMBER  new connections => the names of the servers, or refused, or lost
func many(argument string) error {
	var address string
	var n, port int
	if _, err := fmt.Sscan(argument, &address, &n, &port); err != nil {
		return err
	}
	type client struct {
		net.Conn
		in   *bufio.Reader
		name string
	}
	ask := func(c *client) error {
		_ = c.SetDeadline(time.Now().Add(15 * time.Second)) // fails only without a connection
		if _, err := fmt.Fprint(c, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
			return err
		}
		answer, err := http.ReadResponse(c.in, nil)
		if err != nil {
			return err
		}
		body, err := io.ReadAll(answer.Body)
		c.name, _, _ = strings.Cut(string(body), " ")
		return err
	}
	dial := func(to string) (*client, error) {
		port++
		d := net.Dialer{Timeout: 3 * time.Second, LocalAddr: &net.TCPAddr{Port: port}}
		c, err := d.Dial("tcp", to)
		if err != nil {
			return nil, err
		}
		one := &client{Conn: c, in: bufio.NewReader(c)}
		return one, ask(one)
	}
	var open []*client
	for range n {
		c, err := dial(address)
		if err != nil {
			return err
		}
		open = append(open, c)
	}
	fmt.Println("open", len(open))
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		words := strings.Fields(lines.Text())
		if words[0] == "use" {
			cut := 0
			for _, c := range open {
				name := c.name
				if slices.Contains(words[1:], name) {
					continue
				}
				if err := ask(c); err != nil || c.name != name {
					fmt.Fprintf(os.Stderr, "%s to %s: %v, answer of %q\n", c.LocalAddr(), name, err, c.name)
					cut++
				}
			}
			fmt.Println("cut", cut)
			continue
		}
		times, err := strconv.Atoi(words[2])
		if err != nil {
			return err
		}
		reached := map[string]bool{}
		for range times {
			c, err := dial(words[1])
			switch {
			case err == nil:
				reached[c.name] = true
			case errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
				reached["refused"] = true
			default:
				reached["lost"] = true
			}
			if c != nil {
				_ = c.Close()
			}
		}
		fmt.Println(strings.Join(slices.Sorted(maps.Keys(reached)), " "))
	}
	return nil
}

// lead listens at an address in a namespace, and leads to a socket outside of it.
func lead(argument string) error {
	address, socket, _ := strings.Cut(argument, " ")
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	return relay(listener, "unix", socket)
}

// relay leads every connection to an address, until the listener is closed.
func relay(listener net.Listener, network, address string) error {
	for {
		c, err := listener.Accept()
		if err != nil {
			return err
		}
		go func() {
			defer c.Close()
			to, err := net.Dial(network, address)
			if err != nil {
				return
			}
			defer to.Close()
			go func() { _, _ = io.Copy(to, c); _ = to.Close() }()
			_, _ = io.Copy(c, to)
		}()
	}
}
