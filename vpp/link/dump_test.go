package link

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/memclnt"
	"go.fd.io/govpp/binapi/nat44_ed"
)

// ports dumps the mappings and returns their ports.
func ports(t *testing.T, l Caller) ([]uint16, error) {
	t.Helper()
	var all []uint16
	err := l.Dump(t.Context(), &nat44_ed.Nat44LbStaticMappingDump{}, func(m api.Message) {
		all = append(all, m.(*nat44_ed.Nat44LbStaticMappingDetails).ExternalPort)
	})
	return all, err
}

func TestDump(t *testing.T) {
	for _, n := range []int{0, 1, 3000} {
		bubble(t, Config{Window: 4}, func(t *testing.T, vpp *fakeVPP, l *running) {
			if _, err := l.Do(t.Context(), adds(n)); err != nil {
				t.Fatal(err)
			}
			got, err := ports(t, l)
			if err != nil || len(got) != n {
				t.Fatalf("dump has %d rows of %d, error %v", len(got), n, err)
			}
			for i, port := range got {
				if int(port) != i+1 {
					t.Fatalf("row %d is of port %d", i, port)
				}
			}
		})
	}
}

func TestDumpDeliversFreshMessages(t *testing.T) {
	bubble(t, Config{}, func(t *testing.T, vpp *fakeVPP, l *running) {
		if _, err := l.Do(t.Context(), adds(2)); err != nil {
			t.Fatal(err)
		}
		var kept []*nat44_ed.Nat44LbStaticMappingDetails
		err := l.Dump(t.Context(), &nat44_ed.Nat44LbStaticMappingDump{}, func(m api.Message) {
			kept = append(kept, m.(*nat44_ed.Nat44LbStaticMappingDetails))
			// A consumer may use the link itself.
			if _, err := ports(t, l); err != nil {
				t.Error(err)
			}
		})
		if err != nil || len(kept) != 2 || kept[0] == kept[1] || kept[0].ExternalPort != 1 || kept[0].Tag != "troupe/test" || len(kept[1].Locals) != 2 {
			t.Errorf("details = %v, error %v", kept, err)
		}
	})
}

func TestDumpIsAllOrNothing(t *testing.T) {
	bubble(t, Config{}, func(t *testing.T, vpp *fakeVPP, l *running) {
		if _, err := l.Do(t.Context(), adds(10)); err != nil {
			t.Fatal(err)
		}
		vpp.setFault(func(c *fakeConn, req api.Message, frames [][]byte) [][]byte {
			if _, dump := req.(*nat44_ed.Nat44LbStaticMappingDump); dump {
				time.AfterFunc(time.Millisecond, vpp.crash)
			}
			if _, ping := req.(*memclnt.ControlPing); ping {
				return nil
			}
			return frames
		})
		got, err := ports(t, l)
		if !errors.Is(err, ErrUnknown) || len(got) != 0 {
			t.Errorf("dump = %v, %v; want nothing and ErrUnknown", got, err)
		}
	})
}

func TestDumpLimits(t *testing.T) {
	for name, cfg := range map[string]Config{"details": {MaxDumpDetails: 5}, "bytes": {MaxDumpBytes: 500}} {
		t.Run(name, func(t *testing.T) {
			bubble(t, cfg, func(t *testing.T, vpp *fakeVPP, l *running) {
				if _, err := l.Do(t.Context(), adds(5)); err != nil {
					t.Fatal(err)
				}
				if name == "details" {
					if got, err := ports(t, l); err != nil || len(got) != 5 {
						t.Errorf("dump at the limit = %v, %v", got, err)
					}
				}
				if _, err := l.Do(t.Context(), adds(6)); err != nil {
					t.Fatal(err)
				}
				if got, err := ports(t, l); !errors.Is(err, ErrTooLarge) || len(got) != 0 {
					t.Errorf("dump = %v, %v; want ErrTooLarge", got, err)
				}
				time.Sleep(2 * time.Second)
				if results, err := l.Do(t.Context(), []api.Message{add(6)}); err != nil || !errors.Is(results[0].Err, api.VALUE_EXIST) {
					t.Errorf("the next connection is not usable: %v, %v", results, err)
				}
			})
		})
	}
}

func TestDumpWithTheWrongMethod(t *testing.T) {
	bubble(t, Config{}, func(t *testing.T, vpp *fakeVPP, l *running) {
		for _, req := range []api.Message{&memclnt.ControlPing{}, nil, &memclnt.ControlPingReply{}} {
			if err := l.Dump(t.Context(), req, nil); !errors.Is(err, ErrRefused) {
				t.Errorf("Dump(%T) = %v, want ErrRefused", req, err)
			}
		}
		vpp.missing["cnat_translation_dump"] = true
		vpp.missing["nat44_ed_output_interface_details"] = true
		if err := l.Dump(t.Context(), &nat44_ed.Nat44EdOutputInterfaceGet{}, nil); !errors.Is(err, ErrUnsupported) {
			t.Errorf("Dump = %v, want ErrUnsupported", err)
		}
	})
}

func TestCancelledDump(t *testing.T) {
	bubble(t, Config{}, func(t *testing.T, vpp *fakeVPP, l *running) {
		if _, err := l.Do(t.Context(), adds(10)); err != nil {
			t.Fatal(err)
		}
		wake := vpp.hang()
		err := l.Dump(deadline(t, time.Millisecond), &nat44_ed.Nat44LbStaticMappingDump{}, func(api.Message) { t.Error("detail delivered") })
		if !errors.Is(err, ErrUnknown) {
			t.Errorf("Dump = %v", err)
		}
		wake()
		synctest.Wait()
		if got, err := ports(t, l); err != nil || len(got) != 10 {
			t.Errorf("next dump = %v, %v", got, err)
		}
	})
}

// outputs reads the paged message.
func outputs(t *testing.T, l Caller, from uint32) ([]uint32, error) {
	t.Helper()
	var all []uint32
	req := &nat44_ed.Nat44EdOutputInterfaceGet{Cursor: from}
	err := l.Dump(t.Context(), req, func(m api.Message) {
		all = append(all, uint32(m.(*nat44_ed.Nat44EdOutputInterfaceDetails).SwIfIndex))
	})
	if req.Cursor != from {
		t.Errorf("the request was changed: cursor %d", req.Cursor)
	}
	return all, err
}

func TestPages(t *testing.T) {
	for name, want := range map[string][]uint32{"none": nil, "one page": {4, 5}, "three pages": {1, 2, 3, 4, 5}} {
		t.Run(name, func(t *testing.T) {
			bubble(t, Config{}, func(t *testing.T, vpp *fakeVPP, l *running) {
				vpp.outputs = want
				got, err := outputs(t, l, 0)
				if err != nil || !cmp.Equal(got, want) {
					t.Errorf("pages = %v, %v; want %v", got, err, want)
				}
			})
		})
	}
}

// pageReply makes every page end with this reply.
func pageReply(vpp *fakeVPP, retval int32, cursor uint32) {
	vpp.setFault(func(c *fakeConn, req api.Message, frames [][]byte) [][]byte {
		if _, get := req.(*nat44_ed.Nat44EdOutputInterfaceGet); !get {
			return frames
		}
		last := frames[len(frames)-1]
		reply := vpp.encode(&nat44_ed.Nat44EdOutputInterfaceGetReply{Retval: retval, Cursor: cursor}, 0)
		copy(reply[2:6], last[2:6])
		return append(frames[:len(frames)-1], reply)
	})
}

func TestPagesEnd(t *testing.T) {
	tests := []struct {
		name    string
		outputs []uint32
		retval  int32
		cursor  uint32
		want    []uint32
		err     error
	}{
		{"cursor is garbage", []uint32{1, 2}, 0, 0, []uint32{1, 2}, nil},
		{"cursor repeats", []uint32{1, 2, 3}, retvalAgain, 0, nil, ErrProtocol},
		{"cursor repeats later", []uint32{1, 2, 3}, retvalAgain, 2, nil, ErrProtocol},
		{"empty pool", nil, retvalInvalidValue, none, nil, nil},
		{"bad cursor", []uint32{1}, retvalInvalidValue, none, nil, api.INVALID_VALUE},
		{"plugin disabled", nil, int32(api.UNSUPPORTED), 0, nil, api.UNSUPPORTED},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, Config{}, func(t *testing.T, vpp *fakeVPP, l *running) {
				vpp.outputs = tt.outputs
				pageReply(vpp, tt.retval, tt.cursor)
				got, err := outputs(t, l, 0)
				if !errors.Is(err, tt.err) || !cmp.Equal(got, tt.want) {
					t.Errorf("pages = %v, %v; want %v, %v", got, err, tt.want, tt.err)
				}
			})
		})
	}
}

func TestPagesAreLimited(t *testing.T) {
	bubble(t, Config{MaxDumpDetails: 4}, func(t *testing.T, vpp *fakeVPP, l *running) {
		vpp.outputs = []uint32{1, 2, 3, 4, 5}
		if got, err := outputs(t, l, 0); !errors.Is(err, ErrTooLarge) {
			t.Errorf("pages = %v, %v; want ErrTooLarge", got, err)
		}
	})
}
