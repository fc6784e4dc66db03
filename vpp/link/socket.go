package link

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"time"

	"go.fd.io/govpp/adapter"
	"go.fd.io/govpp/binapi/memclnt"
	"go.fd.io/govpp/codec"
)

const (
	// headerBytes is the size of the header before each message: 8 bytes that only the sender
	// uses, the length of the message, and 4 more of the sender.
	headerBytes = 16
	// lengthAt is where the length is.
	lengthAt = 8
	// maxFrame is the largest frame that VPP can send: it allocates every message in its API
	// segment, which has 16 MiB unless api-segment { api-size } in its startup.conf says
	// otherwise (vl_map_shmem in VPP's vlibmemory/memory_shared.c). The largest that the link
	// asks for is the message table of the handshake, 66 bytes for each of about 3,000
	// messages.
	maxFrame = 16 << 20
	// readBuffer is the size of the buffer of the socket's reader. Larger frames are allocated
	// one by one.
	readBuffer = 64 << 10
	// writeBuffer is the number of bytes from which frames are written without a flush.
	writeBuffer = 32 << 10
	// createID is the number of sockclnt_create, which a client has to know before it has the
	// message table.
	createID = 15
	// farewell is how long the last message to VPP, and a write that is under way, may take
	// when the socket closes.
	farewell = 100 * time.Millisecond
)

// transport carries the messages of one connection; socket is the one outside of tests.
type transport interface {
	listen(receive adapter.MsgCallback, ended func(error))
	Connect() error
	Disconnect() error
	GetMsgID(name, crc string) (uint16, error)
	has(name string) bool
	SendMsg(context uint32, request []byte) error
	flush() error
	abort()
}

// socket is the transport over VPP's API socket, for one connection. Other than GoVPP's, it bounds
// what a frame may be, and reports the end of the stream.
type socket struct {
	path    string
	receive adapter.MsgCallback
	// ended is called when the stream has ended or VPP sent what no frame can be.
	ended func(error)

	conn    *net.UnixConn
	input   *bufio.Reader
	ids     map[string]uint16
	client  uint32
	readers sync.WaitGroup

	// write guards the writer's side: the frames that are not written yet, and whether nothing
	// more may be sent, because a part of a frame may have been sent, after which VPP
	// understands no other, or because Connect was aborted.
	write  sync.Mutex
	output []byte
	torn   bool
}

// newSocket makes a transport that is not connected yet.
func newSocket(path string) *socket {
	return &socket{path: path, receive: func(uint16, []byte) {}, ended: func(error) {}}
}

// listen sets the receiver of messages, and what is called at the end of the stream; it is called
// before Connect.
func (s *socket) listen(receive adapter.MsgCallback, ended func(error)) {
	s.receive, s.ended = receive, ended
}

// Connect connects to VPP and reads its message table. It takes as long as VPP takes to answer;
// abort ends it.
func (s *socket) Connect() error {
	conn, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: s.path, Net: "unix"})
	if err != nil {
		return err
	}
	s.input = bufio.NewReaderSize(conn, readBuffer)
	s.write.Lock()
	s.conn = conn
	s.write.Unlock()
	if err := s.register(); err != nil {
		_ = conn.Close()
		return fmt.Errorf("register with VPP: %w", err)
	}
	s.readers.Go(s.readLoop)
	return nil
}

// register sends the first message of a client and takes the numbers of all others from its answer.
func (s *socket) register() error {
	request, err := codec.EncodeMsg(&memclnt.SockclntCreate{Name: "troupe"}, createID)
	if err != nil {
		return err
	}
	if err := errors.Join(s.put(request), s.flush()); err != nil {
		return err
	}
	var buf [readBuffer]byte
	frame, err := s.next(buf[:])
	if err != nil {
		return err
	}
	msg, err := newIncoming(&memclnt.SockclntCreateReply{}, 0).decode(frame)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrProtocol, err)
	}
	reply := msg.(*memclnt.SockclntCreateReply)
	if reply.Response != 0 {
		return &RetvalError{Message: "sockclnt_create", Retval: reply.Response}
	}
	s.client, s.ids = reply.Index, make(map[string]uint16, len(reply.MessageTable))
	for _, entry := range reply.MessageTable {
		// older versions of VPP put the character behind the name
		s.ids[strings.TrimSuffix(entry.Name, "\x13")] = entry.Index
	}
	return nil
}

// abort ends a Connect, also one that has not begun.
func (s *socket) abort() {
	s.write.Lock()
	defer s.write.Unlock()
	s.torn = true
	if s.conn != nil {
		_ = s.conn.Close()
	}
}

// Disconnect says good-bye and closes the socket. A write that VPP does not take ends too.
func (s *socket) Disconnect() error {
	if s.conn == nil {
		return nil
	}
	_ = s.conn.SetWriteDeadline(time.Now().Add(farewell))
	// VPP 25.10 overlooks an end of the stream that follows another read without data (errno of
	// before)
	_ = s.unregister()
	err := s.conn.Close()
	s.readers.Wait()
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

// unregister sends the last message of a client. Its answer is not read.
func (s *socket) unregister() error {
	request := &memclnt.SockclntDelete{Index: s.client}
	id, err := s.GetMsgID(request.GetMessageName(), request.GetCrcString())
	if err != nil {
		return err
	}
	data, err := codec.EncodeMsg(request, id)
	if err != nil {
		return err
	}
	return errors.Join(s.SendMsg(0, data), s.flush())
}

// GetMsgID returns the number that VPP gave to a message.
func (s *socket) GetMsgID(name, crc string) (uint16, error) {
	if id, found := s.ids[name+"_"+crc]; found {
		return id, nil
	}
	return 0, &adapter.UnknownMsgError{MsgName: name, MsgCrc: crc}
}

// has reports whether VPP has a message of this name, in whatever version.
func (s *socket) has(name string) bool {
	for known := range s.ids {
		if i := strings.LastIndexByte(known, '_'); i >= 0 && known[:i] == name {
			return true
		}
	}
	return false
}

// SendMsg completes the header of a request, which is changed, and sends it, at the latest with the
// next flush.
func (s *socket) SendMsg(context uint32, request []byte) error {
	if len(request) < 10 {
		return fmt.Errorf("request of %d bytes, must have at least 10", len(request))
	}
	binary.BigEndian.PutUint32(request[2:], s.client)
	binary.BigEndian.PutUint32(request[6:], context)
	return s.put(request)
}

// put adds a frame to the buffer, and writes a full buffer.
func (s *socket) put(data []byte) error {
	s.write.Lock()
	defer s.write.Unlock()
	var header [headerBytes]byte
	binary.BigEndian.PutUint32(header[lengthAt:], uint32(len(data)))
	s.output = append(append(s.output, header[:]...), data...)
	if len(s.output) < writeBuffer {
		return nil
	}
	return s.writeOut()
}

// flush writes the frames in the buffer.
func (s *socket) flush() error {
	s.write.Lock()
	defer s.write.Unlock()
	return s.writeOut()
}

// writeOut is flush; write is held.
func (s *socket) writeOut() error {
	if s.torn {
		return net.ErrClosed
	}
	if len(s.output) == 0 {
		return nil
	}
	_, err := s.conn.Write(s.output)
	s.output, s.torn = s.output[:0], err != nil
	return err
}

// readLoop passes frames on until the stream ends.
func (s *socket) readLoop() {
	buf := make([]byte, readBuffer)
	for {
		frame, err := s.next(buf)
		if err != nil {
			s.ended(err)
			return
		}
		s.receive(binary.BigEndian.Uint16(frame), frame)
	}
}

// next reads a frame, into buf where it is large enough.
func (s *socket) next(buf []byte) ([]byte, error) {
	header, err := s.input.Peek(headerBytes)
	if err != nil {
		return nil, fmt.Errorf("read from VPP: %w", err)
	}
	length := binary.BigEndian.Uint32(header[lengthAt:])
	if length < 2 || length > maxFrame {
		return nil, fmt.Errorf("%w: frame of %d bytes, must be 2 to %d", ErrProtocol, length, maxFrame)
	}
	if _, err := s.input.Discard(headerBytes); err != nil {
		return nil, fmt.Errorf("read from VPP: %w", err)
	}
	if int(length) > len(buf) {
		buf = make([]byte, length)
	}
	frame := buf[:length]
	if _, err := io.ReadFull(s.input, frame); err != nil {
		return nil, fmt.Errorf("read a frame of %d bytes from VPP: %w", length, err)
	}
	return frame, nil
}
