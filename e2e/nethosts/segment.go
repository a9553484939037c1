//go:build linux

package nethosts

import (
	"encoding/binary"
	"net/netip"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// Segment is one of a TCP connection.
type Segment struct {
	From          netip.AddrPort
	Seq           uint32 // of its first byte; a SYN, and a FIN after the payload, take one number
	SYN, FIN, RST bool
	Payload       []byte
}

// Flags of a TCP header.
const (
	flagFIN = 1 << iota
	flagSYN
	flagRST
)

// segmentFilter lets pass what came from outside, is IPv4 and TCP and for the port, and carries a
// payload or opens or ends a connection. Everything else, which is mostly acknowledgements, costs
// nothing but the filter's run.
func segmentFilter(port uint16) ([]unix.SockFilter, error) {
	const accept, reject = 254, 255 // where to skip to, replaced by how far below
	program := []bpf.Instruction{
		bpf.LoadExtension{Num: bpf.ExtType},
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: unix.PACKET_HOST, SkipTrue: reject},
		bpf.LoadAbsolute{Off: 9, Size: 1}, // protocol
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: unix.IPPROTO_TCP, SkipTrue: reject},
		bpf.LoadAbsolute{Off: 6, Size: 2}, // a later fragment has no header
		bpf.JumpIf{Cond: bpf.JumpBitsSet, Val: 0x1fff, SkipTrue: reject},
		bpf.LoadMemShift{Off: 0}, // X: length of the IP header
		bpf.LoadIndirect{Off: 2, Size: 2},
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: uint32(port), SkipTrue: reject},
		bpf.LoadIndirect{Off: 13, Size: 1},
		bpf.JumpIf{Cond: bpf.JumpBitsSet, Val: flagFIN | flagSYN | flagRST, SkipTrue: accept},
		bpf.LoadIndirect{Off: 12, Size: 1}, // words of the TCP header, in the upper half
		bpf.ALUOpConstant{Op: bpf.ALUOpShiftRight, Val: 2},
		bpf.ALUOpConstant{Op: bpf.ALUOpAnd, Val: 0x3c},
		bpf.ALUOpX{Op: bpf.ALUOpAdd},
		bpf.TAX{}, // X: length of both headers
		bpf.LoadAbsolute{Off: 2, Size: 2},
		bpf.JumpIfX{Cond: bpf.JumpLessOrEqual, SkipTrue: 1}, // no payload
		bpf.RetConstant{Val: packetRoom},
		bpf.RetConstant{Val: 0},
	}
	for i := range program {
		jump, _ := program[i].(bpf.JumpIf)
		switch jump.SkipTrue {
		case accept:
			jump.SkipTrue = uint8(len(program) - 2 - i - 1)
		case reject:
			jump.SkipTrue = uint8(len(program) - 1 - i - 1)
		default:
			continue
		}
		program[i] = jump
	}
	raw, err := bpf.Assemble(program)
	filter := make([]unix.SockFilter, len(raw))
	for i, r := range raw {
		filter[i] = unix.SockFilter{Code: r.Op, Jt: r.Jt, Jf: r.Jf, K: r.K}
	}
	return filter, err
}

// parseSegment reads an IPv4 packet. One whose lengths contradict each other is none of a
// connection.
func parseSegment(packet []byte) (s Segment, ok bool) {
	if len(packet) < 20 || packet[0]>>4 != 4 {
		return s, false
	}
	header, total := int(packet[0]&0xf)*4, int(binary.BigEndian.Uint16(packet[2:]))
	if header < 20 || total > len(packet) || total < header+20 {
		return s, false
	}
	tcp := packet[header:total]
	offset := int(tcp[12]>>4) * 4
	if offset < 20 || offset > len(tcp) {
		return s, false
	}
	from := netip.AddrFrom4([4]byte(packet[12:16]))
	return Segment{
		From: netip.AddrPortFrom(from, binary.BigEndian.Uint16(tcp)),
		Seq:  binary.BigEndian.Uint32(tcp[4:]),
		SYN:  tcp[13]&flagSYN != 0, FIN: tcp[13]&flagFIN != 0, RST: tcp[13]&flagRST != 0,
		Payload: tcp[offset:],
	}, true
}
