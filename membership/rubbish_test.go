package membership

import "google.golang.org/grpc/mem"

// rubbish is a codec of bytes that are no protobuf message.
type rubbish struct{}

func (rubbish) Marshal(any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer("\xff\xff\xff\xff")}, nil
}

func (rubbish) Unmarshal(mem.BufferSlice, any) error { return nil }

func (rubbish) Name() string { return "proto" }
