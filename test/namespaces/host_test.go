package namespaces

import (
	"bufio"
	"encoding/binary"
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
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// foreign are the protocols that no service has, by their numbers: IPIP, GRE, ESP, SCTP.
var foreign = []int{4, 47, 50, 132}

// attempt is how long a client waits for an answer.
const attempt = 3 * time.Second

// peer is a host of a layout, server and client in one process. It serves as serve does, hears
// foreign protocols, and its test asks it by HTTP at a socket.
type peer struct {
	name string
	port atomic.Int32 // the last local port; each connection has one of its own, see many
	lock sync.Mutex
	raw  map[string]bool      // "ID PROTOCOL saw ADDRESS" of each foreign packet
	held map[string]*openConn // by the address that it was opened to
}

// openConn is a connection that stays open.
type openConn struct {
	net.Conn
	in *bufio.Reader
}

// playPeer is the role of a host, its argument "name socket".
func playPeer(argument string) error {
	name, socket, _ := strings.Cut(argument, " ")
	p := &peer{name: name, raw: map[string]bool{}, held: map[string]*openConn{}}
	p.port.Store(20_000)
	for _, protocol := range foreign {
		c, err := net.ListenPacket("ip4:"+strconv.Itoa(protocol), "0.0.0.0")
		if err != nil {
			return err
		}
		go p.hear(protocol, c)
	}
	go func() {
		fmt.Fprintln(os.Stderr, serve(name))
		os.Exit(1) // its port is taken
	}()
	listener, err := net.Listen("unix", socket)
	if err != nil {
		return err
	}
	answer := func(do func(to string, n int) (string, error)) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			n, err := strconv.Atoi(r.FormValue("n"))
			if err != nil {
				n = 1
			}
			text, err := do(r.FormValue("to"), n)
			if err != nil {
				http.Error(w, err.Error(), http.StatusInternalServerError)
				return
			}
			fmt.Fprint(w, text)
		}
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/tcp", answer(p.each(p.tcp(short))))
	mux.HandleFunc("/upload", answer(p.each(p.tcp(fmt.Sprintf("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s", long, strings.Repeat("x", long))))))
	mux.HandleFunc("/download", answer(p.each(p.tcp(strings.Replace(short, "/", "/large", 1)))))
	mux.HandleFunc("/udp", answer(p.each(p.udp("x"))))
	mux.HandleFunc("/fragments", answer(p.each(p.udp(strings.Repeat("x", large)))))
	mux.HandleFunc("/raw", answer(p.send))
	mux.HandleFunc("/heard", answer(p.heard))
	mux.HandleFunc("/hold", answer(p.hold))
	mux.HandleFunc("/again", answer(p.again))
	return http.Serve(listener, mux)
}

// each makes a number of exchanges at once. It returns the different answers in their order, one a
// line; an exchange without an answer is the line "lost" or "refused".
func (p *peer) each(exchange func(to string) (string, error)) func(string, int) (string, error) {
	return func(to string, n int) (string, error) {
		got := make([]string, n)
		var group sync.WaitGroup
		for i := range n {
			group.Go(func() {
				answer, err := exchange(to)
				switch {
				case errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
					answer = "refused"
				case err != nil:
					answer = "lost"
				}
				got[i] = answer
			})
		}
		group.Wait()
		slices.Sort(got)
		return strings.Join(slices.Compact(got), "\n"), nil
	}
}

// dial opens a connection from a local port that it has not used before. It is given the local
// address ("" = any) and the remote one.
func (p *peer) dial(network, ends string) (net.Conn, error) {
	from, to, _ := strings.Cut(ends, " ")
	port := int(p.port.Add(1))
	d := net.Dialer{Timeout: attempt, LocalAddr: &net.TCPAddr{IP: net.ParseIP(from), Port: port}}
	if network == "udp" {
		d.LocalAddr = &net.UDPAddr{IP: net.ParseIP(from), Port: port}
	}
	return d.Dial(network, to)
}

// short is a request of HTTP, and long the length of one, or of its answer, that takes many
// packets.
const (
	short = "GET / HTTP/1.1\r\nHost: x\r\n\r\n"
	long  = 64_000
)

// ask sends a request of HTTP, and returns the answer.
func ask(c net.Conn, in *bufio.Reader, request string) (string, error) {
	_ = c.SetDeadline(time.Now().Add(attempt)) // fails only without a connection
	if _, err := fmt.Fprint(c, request); err != nil {
		return "", err
	}
	answer, err := http.ReadResponse(in, nil)
	if err != nil {
		return "", err
	}
	body, err := io.ReadAll(answer.Body)
	return strings.TrimRight(string(body), " "), err
}

// tcp sends a request of HTTP.
func (p *peer) tcp(request string) func(string) (string, error) {
	return func(to string) (string, error) {
		c, err := p.dial("tcp", to)
		if err != nil {
			return "", err
		}
		defer c.Close()
		return ask(c, bufio.NewReader(c), request)
	}
}

// large is the length of datagrams that are sent in fragments; so are their answers.
const large = 4000

// udp sends a datagram, again until there is an answer: VPP drops packets to a neighbour that it
// has to ask for.
func (p *peer) udp(datagram string) func(string) (string, error) {
	return func(to string) (string, error) {
		c, err := p.dial("udp", to)
		if err != nil {
			return "", err
		}
		defer c.Close()
		b := make([]byte, 2*large)
		for range 5 {
			if _, err := c.Write([]byte(datagram)); err != nil {
				return "", err
			}
			_ = c.SetReadDeadline(time.Now().Add(attempt / 5)) // fails only without a connection
			n, err := c.Read(b)
			if err == nil {
				return strings.TrimRight(string(b[:n]), " "), nil
			}
			if !errors.Is(err, os.ErrDeadlineExceeded) {
				return "", err
			}
		}
		return "", os.ErrDeadlineExceeded
	}
}

// send sends one packet of each foreign protocol, with an ID that tells it from others.
func (p *peer) send(to string, id int) (string, error) {
	for _, protocol := range foreign {
		c, err := net.Dial("ip4:"+strconv.Itoa(protocol), strings.TrimSpace(to))
		if err != nil {
			return "", err
		}
		_, err = c.Write(binary.BigEndian.AppendUint64(nil, uint64(id)))
		_ = c.Close()
		if err != nil {
			return "", err
		}
	}
	return "", nil
}

// hear remembers the packets of a foreign protocol.
func (p *peer) hear(protocol int, c net.PacketConn) {
	for b := make([]byte, 100); ; {
		n, from, err := c.ReadFrom(b)
		if err != nil || n != 8 {
			continue
		}
		p.lock.Lock()
		p.raw[fmt.Sprintf("%d %d saw %s", binary.BigEndian.Uint64(b), protocol, from)] = true
		p.lock.Unlock()
	}
}

// heard returns the foreign packets with an ID that have come, one a line: "4 saw 10.1.1.2".
func (p *peer) heard(_ string, id int) (string, error) {
	p.lock.Lock()
	defer p.lock.Unlock()
	var lines []string
	for _, key := range slices.Sorted(maps.Keys(p.raw)) {
		if line, found := strings.CutPrefix(key, strconv.Itoa(id)+" "); found {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "\n"), nil
}

// hold opens a connection, which stays open.
func (p *peer) hold(to string, _ int) (string, error) {
	c, err := p.dial("tcp", to)
	if err != nil {
		return "", err
	}
	one := &openConn{c, bufio.NewReader(c)}
	answer, err := ask(c, one.in, short)
	if err != nil {
		_ = c.Close()
		return "", err
	}
	p.lock.Lock()
	defer p.lock.Unlock()
	p.held[to] = one
	return answer, nil
}

// again sends a request on the open connection to an address.
func (p *peer) again(to string, _ int) (string, error) {
	p.lock.Lock()
	one := p.held[to]
	p.lock.Unlock()
	if one == nil {
		return "", fmt.Errorf("no connection to %s", to)
	}
	return ask(one.Conn, one.in, short)
}
