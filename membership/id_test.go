package membership

import (
	"math"
	"strings"
	"testing"
)

func TestIDPrintsAsEtcdctlDoes(t *testing.T) {
	for id, want := range map[ID]string{0: "0", 1: "1", 0xabc: "abc", 0x8e9e05c52164694d: "8e9e05c52164694d", math.MaxUint64: "ffffffffffffffff"} {
		if got := id.String(); got != want {
			t.Errorf("got %q for %d, want %q", got, uint64(id), want)
		}
	}
}

func TestParseIDRefusesWhatIsNoID(t *testing.T) {
	for _, s := range []string{"", " 1", "1 ", "0x1", "-1", "+1", "1_0", "g", "12345678901234567", "ｆ", "\x00", strings.Repeat("f", 1<<20)} {
		id, err := ParseID(s)
		if err == nil || id != 0 {
			t.Errorf("ParseID(%.20q): got %v, %v, want 0 and an error: ids come from strangers", s, id, err)
		}
		if err != nil && len(err.Error()) > 300 {
			t.Errorf("ParseID of %d bytes: got an error of %d bytes, want a short one: it ends in logs", len(s), len(err.Error()))
		}
	}
}

func FuzzParseID(f *testing.F) {
	for _, s := range []string{"", "0", "8e9e05c52164694d", "8E9E", "0x1", "ffffffffffffffffff", "\xff"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		id, err := ParseID(s)
		if err != nil {
			return
		}
		if back, err := ParseID(id.String()); err != nil || back != id {
			t.Errorf("ParseID(%q) is %v, which reads back as %v, %v: want the same", s, id, back, err)
		}
		if want := strings.TrimLeft(strings.ToLower(s), "0"); want != strings.TrimLeft(id.String(), "0") {
			t.Errorf("ParseID(%q): got %v, want %v", s, id, want)
		}
	})
}
