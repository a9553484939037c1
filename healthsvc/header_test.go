package healthsvc

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/metadata"
)

func TestHeadersArriveAsTheyWereSent(t *testing.T) {
	now := time.Unix(1_700_000_100, 0)
	r := Report{
		Identity:  Identity{Cluster: 0xcdf818194e3a8c32, Member: 1, Leader: 1<<64 - 1, Term: 1<<64 - 1, Start: time.Unix(0, 1_700_000_000_000_000_001)},
		Reason:    ReasonNoQuorum,
		LastProof: now.Add(-1234 * time.Millisecond), RoundTrip: 567 * time.Microsecond, Poll: 2 * time.Second,
	}
	got := parseHeaders(answerHeaders(r.lastingHeaders(), r.LastProof, now))
	want := headers{identity: r.Identity, reason: ReasonNoQuorum, proofAge: 1234 * time.Millisecond, roundTrip: 567 * time.Microsecond, poll: 2 * time.Second}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(headers{})); diff != "" {
		t.Errorf("headers changed on the way (-want +got):\n%s", diff)
	}
}

func TestHeadersSayOnlyWhatIsKnown(t *testing.T) {
	var r Report
	if got := answerHeaders(r.lastingHeaders(), r.LastProof, time.Now()); len(got) != 0 {
		t.Errorf("headers of an empty report = %v, want none: a zero could be taken for a fact", got)
	}
}

func TestProofAgeIsNeverNegative(t *testing.T) {
	now := time.Now()
	md := answerHeaders(nil, now.Add(time.Hour), now)
	if got := parseHeaders(md).proofAge; got != time.Millisecond {
		t.Errorf("age of a proof from the future = %v (%q), want 1ms, the least that is said", got, first(md, HeaderProofAge))
	}
}

// No age at all means that there is no proof, for which a member that settles is left.
func TestProofYoungerThanAMillisecondIsSaid(t *testing.T) {
	now := time.Now()
	for _, age := range []time.Duration{0, 300 * time.Microsecond, time.Millisecond - 1} {
		md := answerHeaders(nil, now.Add(-age), now)
		if got := first(md, HeaderProofAge); got != "1" {
			t.Errorf("a proof %v old is told as %q ms, want 1: readers before this took 0 for no proof", age, got)
		}
		if got := parseHeaders(md).proofAge; got != time.Millisecond {
			t.Errorf("a proof %v old is read as %v, want 1ms", age, got)
		}
	}
	for value, want := range map[string]time.Duration{"0": time.Millisecond, "1": time.Millisecond, "2": 2 * time.Millisecond, "": 0, "x": 0, "-0": 0} {
		if got := parseHeaders(metadata.MD{HeaderProofAge: {value}}).proofAge; got != want {
			t.Errorf("age %q is read as %v, want %v: an older server says 0 of a proof that is younger than 1 ms", value, got, want)
		}
	}
}

func TestSenselessHeadersAreAbsent(t *testing.T) {
	for _, value := range []string{"", " ", "-1", "+1", "0x1", "1.5", "zz", "1e3", "18446744073709551616", strings.Repeat("9", 100_000), "\xff", "१"} {
		md := metadata.MD{}
		for _, key := range []string{HeaderClusterID, HeaderMemberID, HeaderLeaderID, HeaderRaftTerm, HeaderShimStart, HeaderProofAge, HeaderRoundTrip, HeaderPoll} {
			md[key] = []string{value}
		}
		got := parseHeaders(md)
		if value == "1e3" { // a good hexadecimal number
			got.identity.Cluster, got.identity.Member, got.identity.Leader = 0, 0, 0
		}
		if got != (headers{}) {
			t.Errorf("parseHeaders of %.30q everywhere = %+v, want nothing", value, got)
		}
	}
	if got := parseHeaders(metadata.MD{HeaderReason: {strings.Repeat("x", reasonLimit+1)}}); got.reason != "" {
		t.Errorf("a reason of %d bytes was kept, want none: it goes into every log line", reasonLimit+1)
	}
	if got := parseHeaders(metadata.MD{HeaderShimStart: {"18446744073709551615"}}); !got.identity.Start.IsZero() {
		t.Errorf("start = %v, want zero: it is past what a time can hold", got.identity.Start)
	}
	if got := parseHeaders(metadata.MD{HeaderPoll: {"9223372036855"}}); got.poll != 0 {
		t.Errorf("poll = %v, want 0: the number overflows", got.poll)
	}
}

func FuzzParseHeaders(f *testing.F) {
	f.Add("cdf818194e3a8c32", "7", "1700000000000000000", "15", "no-quorum")
	f.Add("-1", "99999999999999999999", "-5", "9223372036854775807", "\x00")
	f.Fuzz(func(t *testing.T, id, term, start, duration, reason string) {
		got := parseHeaders(metadata.MD{
			HeaderClusterID: {id}, HeaderMemberID: {id, id}, HeaderLeaderID: {id}, HeaderRaftTerm: {term}, HeaderShimStart: {start},
			HeaderProofAge: {duration}, HeaderRoundTrip: {duration}, HeaderPoll: {duration}, HeaderReason: {reason},
		})
		if got.proofAge < 0 || got.roundTrip < 0 || got.poll < 0 {
			t.Errorf("negative duration from %q: %+v", duration, got)
		}
		if !got.identity.Start.IsZero() && got.identity.Start.UnixNano() <= 0 {
			t.Errorf("start before 1970 from %q: %v", start, got.identity.Start)
		}
		// What was understood must survive being sent on.
		r := Report{Identity: got.identity, Reason: got.reason, RoundTrip: got.roundTrip, Poll: got.poll}
		again := parseHeaders(r.lastingHeaders())
		got.proofAge = 0
		if !again.identity.Start.Equal(got.identity.Start) {
			t.Errorf("start %v became %v", got.identity.Start, again.identity.Start)
		}
		if again != got {
			t.Errorf("%+v became %+v when it was sent on", got, again)
		}
	})
}

func FuzzPrintable(f *testing.F) {
	f.Add("größer\n")
	f.Fuzz(func(t *testing.T, reason string) {
		got := printable(Reason(reason))
		if parsed := parseReason(metadata.MD{HeaderReason: {got}}); string(parsed) != got {
			t.Errorf("printable(%q) = %q is read as %q", reason, got, parsed)
		}
	})
}
