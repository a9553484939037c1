package workload

import (
	"context"
	"errors"
	"io"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"
)

// reply is how a server reacts to a call on a stream.
type reply func(framer *http2.Framer, id uint32) error

// replier is a server of one connection.
func replier(conn net.Conn, next func() reply) error {
	if _, err := io.ReadFull(conn, make([]byte, len(http2.ClientPreface))); err != nil {
		return err
	}
	framer := http2.NewFramer(conn, conn)
	if err := framer.WriteSettings(); err != nil {
		return err
	}
	for {
		f, err := framer.ReadFrame()
		if err != nil {
			return err
		}
		id := f.Header().StreamID
		switch f := f.(type) {
		case *http2.SettingsFrame:
			if !f.IsAck() {
				err = framer.WriteSettingsAck()
			}
		case *http2.DataFrame:
			if f.StreamEnded() {
				err = next()(framer, id)
			}
		}
		if err != nil {
			return err
		}
	}
}

func answer(framer *http2.Framer, id uint32) error {
	var block writer
	fields := hpack.NewEncoder(&block)
	headers := func(end bool, pairs ...string) error {
		block = nil
		for p := range slices.Chunk(pairs, 2) {
			if err := fields.WriteField(hpack.HeaderField{Name: p[0], Value: p[1]}); err != nil {
				return err
			}
		}
		return framer.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: block, EndHeaders: true, EndStream: end})
	}
	return errors.Join(headers(false, ":status", "200", "content-type", "application/grpc"),
		framer.WriteData(id, false, make([]byte, 5)), headers(true, "grpc-status", "0"))
}

type writer []byte

func (w *writer) Write(p []byte) (int, error) { *w = append(*w, p...); return len(p), nil }

func TestTraceTellsWhatGRPCSentAgain(t *testing.T) {
	refuse := func(f *http2.Framer, id uint32) error { return f.WriteRSTStream(id, http2.ErrCodeRefusedStream) }
	leave := func(f *http2.Framer, id uint32) error { return f.WriteGoAway(id-1, http2.ErrCodeNo, nil) }
	breakOff := func(*http2.Framer, uint32) error { return io.EOF }
	for name, tc := range map[string]struct {
		first reply // others are answered
		code  codes.Code
		want  []bool // of each attempt: gRPC itself began it
	}{
		"answered":                         {answer, codes.OK, []bool{false}},
		"refused":                          {refuse, codes.OK, []bool{false, true}},
		"not processed by one that leaves": {leave, codes.OK, []bool{false, true}},
		"perhaps processed":                {breakOff, codes.Unavailable, []bool{false}},
	} {
		replies := make(chan reply, 1)
		replies <- tc.first
		trace, code := putTo(t, func() reply {
			select {
			case first := <-replies:
				return first
			default:
				return answer
			}
		})
		var again []bool
		for _, a := range trace.Attempts(func(Attempt) bool { return true }) {
			again = append(again, a.Again)
			if !slices.Equal(a.Values, []string{"v"}) {
				t.Errorf("%s: an attempt carries %q; want v", name, a.Values)
			}
		}
		if code != tc.code || !slices.Equal(again, tc.want) {
			t.Errorf("%s: %v, sent again %t; want %v, %t", name, code, again, tc.code, tc.want)
		}
	}
}

// putTo puts "v" once, by a client with a trace, to a server that replies so.
func putTo(t *testing.T, next func() reply) (*Trace, codes.Code) {
	t.Helper()
	listener := bufconn.Listen(1 << 16)
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			serving.Go(func() { defer conn.Close(); _ = replier(conn, next) })
		}
	})
	defer serving.Wait()
	defer listener.Close()
	trace := new(Trace)
	conn, err := grpc.NewClient("passthrough:///m1", grpc.WithTransportCredentials(insecure.NewCredentials()), trace.DialOption(),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	_, err = pb.NewKVClient(conn).Put(AsUser(ctx), put("v"))
	return trace, status.Code(err)
}
