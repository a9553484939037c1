//go:build linux

package realetcd

import (
	"bytes"
	"encoding/binary"
	"slices"
	"strings"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"google.golang.org/protobuf/proto"
)

// talk is what a client sends.
type talk struct {
	bytes.Buffer
	framer  *http2.Framer
	headers bytes.Buffer
	encoder *hpack.Encoder
}

func newTalk() *talk {
	k := new(talk)
	k.WriteString(http2.ClientPreface)
	k.framer = http2.NewFramer(&k.Buffer, nil)
	k.framer.AllowIllegalWrites = true
	k.encoder = hpack.NewEncoder(&k.headers)
	k.framer.WriteSettings()
	return k
}

const (
	putPath = "/etcdserverpb.KV/Put"
	txnPath = "/etcdserverpb.KV/Txn"
)

// open writes headers, in two frames.
func (k *talk) open(stream uint32, path string) {
	k.headers.Reset()
	for _, f := range [][2]string{{":method", "POST"}, {":scheme", "http"}, {":path", path}, {":authority", "m1"}, {"te", "trailers"}} {
		k.encoder.WriteField(hpack.HeaderField{Name: f[0], Value: f[1]})
	}
	block := k.headers.Bytes()
	k.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: block[:1]})
	k.framer.WriteContinuation(stream, true, block[1:])
}

func message(m proto.Message) []byte {
	body, err := proto.Marshal(m)
	if err != nil {
		panic(err)
	}
	return append(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(body))), body...)
}

// call writes a whole call, its message in frames of at most size bytes.
func (k *talk) call(stream uint32, path string, m proto.Message, size int) {
	k.open(stream, path)
	for chunk := range slices.Chunk(message(m), size) {
		k.framer.WriteData(stream, false, chunk)
	}
	k.framer.WriteData(stream, true, nil)
}

// heard gives bytes to a parser, in pieces of one size, and returns the values it found.
func heard(p []byte, size int) (values []string, r *requests, err error) {
	r = &requests{take: func(v []string) { values = append(values, v...) }}
	for chunk := range slices.Chunk(p, size) {
		if e := r.write(bytes.Clone(chunk)); e != nil {
			if err != nil {
				panic("a second error")
			}
			err = e
		}
	}
	return values, r, err
}

func TestRequestsFindsMutationsHoweverTheyAreCut(t *testing.T) {
	k := newTalk()
	k.call(1, putPath, put("a"), 1<<10)
	k.call(3, "/etcdserverpb.KV/Range", &pb.RangeRequest{Key: []byte("k")}, 1<<10)
	k.call(5, txnPath, &pb.TxnRequest{Success: []*pb.RequestOp{putOp("b"), putOp("b")}, Failure: []*pb.RequestOp{putOp("c")}}, 3)
	k.framer.WritePing(false, [8]byte{})
	k.open(7, putPath)
	k.framer.WriteRSTStream(7, http2.ErrCodeCancel) // given up before its message
	k.open(9, putPath)
	half := message(put("half"))
	k.framer.WriteData(9, false, half[:len(half)-1])
	k.call(11, putPath, put(strings.Repeat("x", 3*frameMost)), frameMost)
	k.open(13, "/etcdserverpb.Watch/Watch")
	k.framer.WriteData(13, false, message(put("watch")))
	k.framer.WriteDataPadded(9, true, half[len(half)-1:], make([]byte, 9))
	k.call(15, putPath, put("a"), 1)
	k.framer.WriteGoAway(0, http2.ErrCodeNo, nil)
	want := []string{"a", "b", "c", "half", "a"}
	for _, size := range []int{1, 2, 7, 100, 1 << 20} {
		got, r, err := heard(k.Bytes(), size)
		if !slices.Equal(got, want) || err != nil {
			t.Errorf("in pieces of %d: %q (%v); want %q", size, got, err, want)
		}
		if len(r.calls) > 0 || len(r.rest) > 0 {
			t.Errorf("in pieces of %d: %d streams and %d bytes are kept", size, len(r.calls), len(r.rest))
		}
	}
}

func TestRequestsTellsWhatCannotBeFollowed(t *testing.T) {
	with := func(more func(*talk)) []byte {
		k := newTalk()
		k.call(1, putPath, put("a"), 100)
		more(k)
		k.call(21, putPath, put("later"), 100)
		return k.Bytes()
	}
	both, first := []string{"a", "later"}, []string{"a"}
	for name, tc := range map[string]struct {
		bytes  []byte
		values []string
		says   string // "": complete
	}{
		"TLS":                 {[]byte("\x16\x03\x01\x02\x00\x01"), nil, "TLS"},
		"the gateway":         {[]byte("POST /v3/kv/put HTTP/1.1\r\n\r\n{}"), nil, "HTTP/1"},
		"a look at health":    {[]byte("GET /health HTTP/1.1\r\n\r\n"), nil, ""},
		"another preface":     {[]byte("PRI * HTTP/3.0\r\n"), nil, ""},
		"nothing at all":      {nil, nil, ""},
		"half a preface":      {[]byte("PRI"), nil, ""},
		"compression":         {with(func(k *talk) { k.open(3, putPath); k.framer.WriteData(3, true, []byte{1, 0, 0, 0, 1, 7}) }), first, "compressed"},
		"a message of 4 GiB":  {with(func(k *talk) { k.open(3, putPath); k.framer.WriteData(3, true, []byte("\x00\xff\xff\xff\xff")) }), first, "mutation of"},
		"a frame of 1 MiB":    {with(func(k *talk) { k.framer.WriteData(3, true, make([]byte, 1<<20)) }), first, "frame of"},
		"headers without end": {with(func(k *talk) { k.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: 3}) }), first, "cannot be read"},
		"headers of no meaning": {with(func(k *talk) {
			k.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: 3, BlockFragment: []byte{0xff}, EndHeaders: true})
		}), first, "cannot be read"},
		"endless headers": {with(func(k *talk) {
			k.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: 3})
			for range headersMost / frameMost {
				k.framer.WriteContinuation(3, false, make([]byte, frameMost))
			}
		}), first, "headers of more than"},
		"a refused stream":   {with(func(k *talk) { k.open(3, ""); k.framer.WriteWindowUpdate(3, 0) }), both, ""},
		"a wrong message":    {with(func(k *talk) { k.open(3, putPath); k.framer.WriteData(3, true, []byte("\x00\x00\x00\x00\x02\xff\xff")) }), both, ""},
		"an unknown frame":   {with(func(k *talk) { k.framer.WriteRawFrame(99, 0, 3, []byte("?")) }), both, ""},
		"more after the end": {with(func(k *talk) { k.framer.WriteData(1, true, message(put("a"))) }), both, ""},
		"a stream once more": {with(func(k *talk) { k.call(1, putPath, put("a"), 100) }), both, ""},
	} {
		for _, size := range []int{1, 1000} {
			got, _, err := heard(tc.bytes, size)
			switch {
			case !slices.Equal(got, tc.values):
				t.Errorf("%s: %q; want %q", name, got, tc.values)
			case tc.says == "" && err != nil, tc.says != "" && (err == nil || !strings.Contains(err.Error(), tc.says)):
				t.Errorf("%s: %v; want %q", name, err, tc.says)
			}
		}
	}
}

// Whatever comes, and however it is cut: no panic, no end, and the same found.
func FuzzRequests(f *testing.F) {
	k := newTalk()
	k.call(1, putPath, put("a"), 5)
	k.call(3, txnPath, &pb.TxnRequest{Success: []*pb.RequestOp{txnOp(putOp("b"))}}, 100)
	k.framer.WriteRSTStream(3, 0)
	f.Add(k.Bytes(), uint16(3))
	f.Add(k.Bytes()[len(http2.ClientPreface):], uint16(100))
	f.Add([]byte("GET / HTTP/1.1"), uint16(1))
	f.Fuzz(func(t *testing.T, p []byte, size uint16) {
		for _, p := range [][]byte{p, append([]byte(http2.ClientPreface), p...)} {
			whole, r, err := heard(p, len(p)+1)
			parts, _, err2 := heard(p, int(size)+1)
			if !slices.Equal(whole, parts) || (err == nil) != (err2 == nil) {
				t.Errorf("as a whole %q (%v), in pieces of %d %q (%v)", whole, err, int(size)+1, parts, err2)
			}
			if len(r.rest) > len(p) {
				t.Errorf("%d bytes are kept of %d", len(r.rest), len(p))
			}
		}
	})
}
