package healthsvc

import (
	"math"
	"strconv"
	"time"

	"google.golang.org/grpc/metadata"
)

// Headers that accompany every answer: of Check and List each time, of Watch once, when the
// stream begins. All of them are optional for whoever reads them.
const (
	HeaderClusterID = "etcd-cluster-id"    // hex, as etcdctl prints it
	HeaderMemberID  = "etcd-member-id"     // hex
	HeaderLeaderID  = "etcd-leader-id"     // hex; absent while no leader is known
	HeaderRaftTerm  = "etcd-raft-term"     // decimal
	HeaderReason    = "etcd-health-reason" // a Reason; absent when there is nothing to explain
	HeaderShimStart = "etcd-shim-start"    // Unix time in nanoseconds
	HeaderProofAge  = "etcd-proof-age-ms"  // since the newest proof began, when the answer was made; at least 1
	HeaderRoundTrip = "etcd-proof-rtt-us"  // smoothed round trip of a proof
	HeaderPoll      = "etcd-poll-ms"       // how often the server wishes to be polled
)

// reasonLimit bounds a Reason on the wire, in bytes, both when we write one and when we read one.
const reasonLimit = 64

// lastingHeaders returns the headers that hold as long as the report does. Unknown values are left
// out, so that a reader cannot take a zero for a fact.
func (r *Report) lastingHeaders() metadata.MD {
	md := make(metadata.MD, 9)
	hex := func(key string, id uint64) {
		if id != 0 {
			md[key] = []string{strconv.FormatUint(id, 16)}
		}
	}
	decimal := func(key string, n int64) {
		if n > 0 {
			md[key] = []string{strconv.FormatInt(n, 10)}
		}
	}
	hex(HeaderClusterID, r.Cluster)
	hex(HeaderMemberID, r.Member)
	hex(HeaderLeaderID, r.Leader)
	if r.Term != 0 {
		md[HeaderRaftTerm] = []string{strconv.FormatUint(r.Term, 10)}
	}
	if !r.Start.IsZero() {
		decimal(HeaderShimStart, r.Start.UnixNano())
	}
	decimal(HeaderRoundTrip, r.RoundTrip.Microseconds())
	decimal(HeaderPoll, r.Poll.Milliseconds())
	if r.Reason != "" {
		md[HeaderReason] = []string{printable(r.Reason)}
	}
	return md
}

// answerHeaders adds to the lasting headers what depends on the moment of the answer.
func answerHeaders(lasting metadata.MD, lastProof, now time.Time) metadata.MD {
	md := make(metadata.MD, len(lasting)+1)
	for key, values := range lasting {
		md[key] = values
	}
	if !lastProof.IsZero() {
		// A proof from the future is a clock that was set back: fresh, not negative. Whoever reads
		// it may take a zero for "no proof".
		age := max(now.Sub(lastProof).Milliseconds(), 1)
		md[HeaderProofAge] = []string{strconv.FormatInt(age, 10)}
	}
	return md
}

// printable returns r as a header may carry it. gRPC refuses the whole set of headers for one
// value outside printable ASCII, and a reason must not cost the answer its identity.
func printable(r Reason) string {
	b := []byte(r[:min(len(r), reasonLimit)])
	for i, c := range b {
		if c < 0x20 || c > 0x7e {
			b[i] = '?'
		}
	}
	return string(b)
}

// headers is what a client reads from an answer. Zero fields were absent or made no sense.
type headers struct {
	identity  Identity
	reason    Reason
	proofAge  time.Duration
	roundTrip time.Duration
	poll      time.Duration
}

// parseHeaders never fails: a header that is absent, malformed, negative or too large counts as
// absent, since what counts is the status that came with it.
func parseHeaders(md metadata.MD) headers {
	hex := func(key string) uint64 { return parseUint(md, key, 16) }
	return headers{
		identity: Identity{
			Cluster: hex(HeaderClusterID),
			Member:  hex(HeaderMemberID),
			Leader:  hex(HeaderLeaderID),
			Term:    parseUint(md, HeaderRaftTerm, 10),
			Start:   parseStart(md),
		},
		reason:    parseReason(md),
		proofAge:  parseAge(md),
		roundTrip: parseDuration(md, HeaderRoundTrip, time.Microsecond),
		poll:      parseDuration(md, HeaderPoll, time.Millisecond),
	}
}

func first(md metadata.MD, key string) string {
	if values := md[key]; len(values) > 0 {
		return values[0]
	}
	return ""
}

func parseUint(md metadata.MD, key string, base int) uint64 {
	n, err := strconv.ParseUint(first(md, key), base, 64)
	if err != nil {
		return 0
	}
	return n
}

func parseDuration(md metadata.MD, key string, unit time.Duration) time.Duration {
	n := parseUint(md, key, 10)
	if n > uint64(math.MaxInt64/unit) {
		return 0
	}
	return time.Duration(n) * unit
}

// parseAge reads a zero as the least age: servers that say it mean a proof younger than that, and
// send no age without one.
func parseAge(md metadata.MD) time.Duration {
	if n, err := strconv.ParseUint(first(md, HeaderProofAge), 10, 64); err == nil && n == 0 {
		return time.Millisecond
	}
	return parseDuration(md, HeaderProofAge, time.Millisecond)
}

func parseStart(md metadata.MD) time.Time {
	n := parseUint(md, HeaderShimStart, 10)
	if n == 0 || n > math.MaxInt64 {
		return time.Time{}
	}
	return time.Unix(0, int64(n))
}

func parseReason(md metadata.MD) Reason {
	value := first(md, HeaderReason)
	if len(value) > reasonLimit {
		return ""
	}
	for _, c := range []byte(value) {
		if c < 0x20 || c > 0x7e {
			return ""
		}
	}
	return Reason(value)
}
