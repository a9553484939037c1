package membership

import (
	"fmt"
	"strconv"
)

// ID names a cluster or a member. Zero means not known: etcd gives neither a
// cluster nor a member the number zero, and a leader of zero is no leader.
type ID uint64

// String returns the form that etcdctl prints: hexadecimal in lower case,
// without a prefix and without leading zeros.
func (id ID) String() string { return strconv.FormatUint(uint64(id), 16) }

// ParseID reads what [ID.String] writes. It is as strict as it can be, since
// what it reads comes from headers of servers: 1 to 16 hexadecimal digits and
// nothing else. It never panics.
func ParseID(s string) (ID, error) {
	if n := len(s); n == 0 || n > 16 {
		return 0, fmt.Errorf("membership: %.40q is not an id: want 1 to 16 hexadecimal digits, as etcdctl prints it, got %d characters", s, len(s))
	}
	for i := range len(s) {
		if !hexDigit(s[i]) {
			return 0, fmt.Errorf("membership: %q is not an id: want hexadecimal digits only, as etcdctl prints it, got %q at %d", s, s[i], i)
		}
	}
	n, err := strconv.ParseUint(s, 16, 64)
	if err != nil {
		return 0, fmt.Errorf("membership: %q is not an id: %w", s, err)
	}
	return ID(n), nil
}

func hexDigit(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F'
}
