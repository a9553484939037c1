//go:build linux

package realetcd

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"google.golang.org/protobuf/proto"

	"github.com/quorumwise/quorumwise/e2e/workload"
)

const (
	// What a gRPC server takes that was not told otherwise, as etcd's is not.
	frameMost     = 16 << 10
	headerTable   = 4 << 10
	frameHeader   = 9
	messagePrefix = 5
	// headersMost bounds the frames of one header block, in bytes, messageMost one message: etcd takes
	// 2 MiB.
	headersMost = 1 << 20
	messageMost = 16 << 20
)

// requests finds the mutations in what a client sends on one connection.
type requests struct {
	take func(values []string) // of a mutation that is there as a whole

	kind   protocol
	rest   []byte // not read yet
	src    bytes.Reader
	framer *http2.Framer
	last   uint32           // highest stream
	calls  map[uint32]*call // streams of mutations that are not there as a whole
}

// protocol is what a connection speaks.
type protocol int

const (
	unknownProtocol protocol = iota // too few bytes to tell
	overHTTP2
	ignoredProtocol // nothing that etcd would take a mutation from, or nothing that can be read
)

// call is a mutation that is coming.
type call struct {
	request proto.Message
	body    []byte // prefix and message, as far as they are there
}

// write takes the bytes that follow. An error says why mutations may be missed from here on; it
// comes once.
func (r *requests) write(p []byte) error {
	if r.kind == ignoredProtocol {
		return nil
	}
	r.rest = append(r.rest, p...)
	err := r.read()
	if err != nil {
		r.kind = ignoredProtocol
	}
	if r.kind == ignoredProtocol {
		r.rest, r.framer, r.calls = nil, nil, nil
	}
	return err
}

func (r *requests) read() error {
	if r.kind == unknownProtocol {
		if err := r.recognise(); err != nil {
			return err
		}
	}
	used := 0
	for r.kind == overHTTP2 {
		n, err := frames(r.rest[used:])
		if err != nil {
			return err
		}
		if n == 0 {
			break
		}
		if err := r.frame(r.rest[used : used+n]); err != nil {
			return err
		}
		used += n
	}
	r.rest = r.rest[:copy(r.rest, r.rest[used:])]
	return nil
}

// recognise tells HTTP/2 by its preface.
func (r *requests) recognise() error {
	const handshake = 0x16 // first byte of TLS
	switch preface := []byte(http2.ClientPreface); {
	case len(r.rest) == 0:
	case r.rest[0] == handshake:
		return errors.New("it speaks TLS")
	case bytes.HasPrefix(r.rest, []byte("POST ")):
		return errors.New("it speaks HTTP/1 and posts something, to the gateway perhaps")
	case bytes.HasPrefix(r.rest, preface):
		r.rest = r.rest[len(preface):]
		r.kind, r.calls, r.framer = overHTTP2, make(map[uint32]*call), http2.NewFramer(nil, &r.src)
		r.framer.SetMaxReadFrameSize(frameMost)
		r.framer.SetReuseFrames()
		r.framer.ReadMetaHeaders = hpack.NewDecoder(headerTable, nil)
	case !bytes.HasPrefix(preface, r.rest) && !bytes.HasPrefix([]byte("POST "), r.rest):
		r.kind = ignoredProtocol
	}
	return nil
}

// frames is the size of the first frame in b, or of the frames of a header block; 0: it is not
// there as a whole.
func frames(b []byte) (size int, err error) {
	for {
		if len(b) < size+frameHeader {
			return 0, nil
		}
		head := b[size:]
		length := int(head[0])<<16 | int(head[1])<<8 | int(head[2])
		kind, flags := http2.FrameType(head[3]), http2.Flags(head[4])
		if length > frameMost {
			return 0, fmt.Errorf("a frame of %d bytes", length)
		}
		if size += frameHeader + length; size > headersMost {
			return 0, fmt.Errorf("headers of more than %d bytes", headersMost)
		}
		if len(b) < size {
			return 0, nil
		}
		// The end of a block has the same flag in both kinds.
		if kind != http2.FrameHeaders && kind != http2.FrameContinuation || flags.Has(http2.FlagHeadersEndHeaders) {
			return size, nil
		}
	}
}

func (r *requests) frame(b []byte) error {
	r.src.Reset(b)
	f, err := r.framer.ReadFrame()
	if refused, ok := errors.AsType[http2.StreamError](err); ok { // by any server, for this stream alone
		r.last = max(r.last, refused.StreamID)
		delete(r.calls, refused.StreamID)
		return nil
	}
	if err != nil {
		return fmt.Errorf("a frame that cannot be read: %w", err)
	}
	switch f := f.(type) {
	case *http2.MetaHeadersFrame:
		return r.headers(f)
	case *http2.DataFrame:
		return r.data(f)
	case *http2.RSTStreamFrame:
		delete(r.calls, f.StreamID)
	}
	return nil
}

func (r *requests) headers(f *http2.MetaHeadersFrame) error {
	if f.Truncated {
		return errors.New("headers that are too long")
	}
	if f.StreamID > r.last { // not a trailer
		r.last = f.StreamID
		switch f.PseudoValue("path") {
		case "/etcdserverpb.KV/Put":
			r.calls[f.StreamID] = &call{request: new(pb.PutRequest)}
		case "/etcdserverpb.KV/Txn":
			r.calls[f.StreamID] = &call{request: new(pb.TxnRequest)}
		}
	}
	if f.StreamEnded() {
		delete(r.calls, f.StreamID)
	}
	return nil
}

func (r *requests) data(f *http2.DataFrame) error {
	c := r.calls[f.StreamID]
	if c == nil {
		return nil
	}
	if f.StreamEnded() {
		delete(r.calls, f.StreamID)
	}
	c.body = append(c.body, f.Data()...)
	if len(c.body) < messagePrefix {
		return nil
	}
	size := binary.BigEndian.Uint32(c.body[1:])
	switch message := c.body[messagePrefix:]; {
	case c.body[0] != 0:
		return errors.New("a mutation that is compressed")
	case size > messageMost:
		return fmt.Errorf("a mutation of %d bytes", size)
	case len(message) >= int(size):
		delete(r.calls, f.StreamID)
		if proto.Unmarshal(message[:size], c.request) == nil { // or else etcd cannot read it either
			r.take(workload.Carried(c.request))
		}
	}
	return nil
}
