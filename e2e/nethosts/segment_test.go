//go:build linux

package nethosts

import (
	"encoding/binary"
	"net/netip"
	"testing"
)

// packet is an IPv4 packet of a TCP segment to port 2379 with options in both headers.
func packet(flags byte, payload string) []byte {
	const ipHeader, tcpHeader = 24, 32
	p := make([]byte, ipHeader+tcpHeader, ipHeader+tcpHeader+len(payload))
	p = append(p, payload...)
	p[0], p[9] = 0x40|ipHeader/4, 6
	binary.BigEndian.PutUint16(p[2:], uint16(len(p)))
	copy(p[12:], []byte{10, 0, 0, 7})
	tcp := p[ipHeader:]
	binary.BigEndian.PutUint16(tcp, 40000)
	binary.BigEndian.PutUint16(tcp[2:], 2379)
	binary.BigEndian.PutUint32(tcp[4:], 77)
	tcp[12], tcp[13] = tcpHeader/4<<4, flags
	return p
}

func TestSegmentIsReadFromAPacket(t *testing.T) {
	s, ok := parseSegment(append(packet(flagFIN, "abc"), "padding"...))
	if !ok || s.From != netip.MustParseAddrPort("10.0.0.7:40000") || s.Seq != 77 || !s.FIN || s.SYN || s.RST || string(s.Payload) != "abc" {
		t.Errorf("read %+v, %t; want what was written, without padding", s, ok)
	}
	for name, spoil := range map[string]func(p []byte) []byte{
		"nothing":                      func(p []byte) []byte { return nil },
		"IPv6":                         func(p []byte) []byte { p[0] = 0x66; return p },
		"cut short":                    func(p []byte) []byte { return p[:40] },
		"an IP header of no length":    func(p []byte) []byte { p[0] = 0x41; return p },
		"a packet shorter than itself": func(p []byte) []byte { p[3] = 30; return p },
		"a TCP header of no length":    func(p []byte) []byte { p[36] = 0x10; return p },
		"a TCP header beyond the end":  func(p []byte) []byte { p[36] = 0xf0; return p },
	} {
		if s, ok := parseSegment(spoil(packet(0, "abc"))); ok {
			t.Errorf("%s was read as %+v", name, s)
		}
	}
}

func FuzzParseSegment(f *testing.F) {
	f.Add(packet(flagSYN, ""))
	f.Add(packet(0, "abc"))
	f.Fuzz(func(t *testing.T, p []byte) {
		if s, ok := parseSegment(p); ok && len(s.Payload) > len(p)-40 {
			t.Errorf("a payload of %d bytes in a packet of %d", len(s.Payload), len(p))
		}
	})
}
