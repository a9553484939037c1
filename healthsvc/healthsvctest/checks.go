package healthsvctest

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/quorumwise/quorumwise/healthsvc"
)

// checks is the contract, clause by clause.
var checks = []check{
	{name: "starts not serving except live", run: startsNotServing},
	{name: "each service follows its own facet", run: facetsAreIndependent},
	{name: "live serves whatever is published", run: liveServes},
	{name: "list agrees with check", run: listAgrees},
	{name: "unknown names are unknown", run: unknownNames},
	{name: "check carries the headers", run: checkHeaders},
	{name: "watch carries the headers", run: watchHeaders},
	{name: "list carries the headers", run: listHeaders},
	{name: "unknown identity has no headers", run: noHeadersForNothing},
	{name: "proof age is of the answer", run: proofAgeGrows},
	{name: "a strange reason costs nothing else", run: strangeReason},
	{name: "watch begins with the present status", run: watchBeginsWithPresent},
	{name: "watch pushes transitions in order", run: watchPushesInOrder},
	{name: "watch does not repeat itself", run: watchDoesNotRepeat},
	{name: "a slow watcher gets the latest", run: slowWatcherGetsLatest},
	{name: "watchers are independent", run: watchersAreIndependent},
	{name: "one answer speaks of one report", run: answersAreWhole},
	{name: "stop ends watches and checks", stops: true, run: stopEnds},
}

// sample is a report with every header.
func sample() healthsvc.Report {
	return healthsvc.Report{
		Identity: healthsvc.Identity{
			Cluster: 0xcdf818194e3a8c32, Member: 0x8e9e05c52164694d, Leader: 0x91bc3c398fb3c146,
			Term: 7, Start: time.Unix(0, 1_700_000_000_123_456_789),
		},
		Reason:  healthsvc.ReasonNoSpace,
		Serving: true, Quorum: true, Read: true, Voter: true,
		LastProof: time.Now(), RoundTrip: 1500 * time.Microsecond, Poll: 750 * time.Millisecond,
	}
}

// only returns a report in which exactly one service serves (etcd.live: none but itself).
func only(service string) healthsvc.Report {
	return healthsvc.Report{
		Serving: service == healthsvc.ServiceServing,
		Quorum:  service == healthsvc.ServiceQuorum,
		Leads:   service == healthsvc.ServiceLeader,
		Read:    service == healthsvc.ServiceRead,
		Write:   service == healthsvc.ServiceWrite,
		Voter:   service == healthsvc.ServiceVoter,
	}
}

func expected(ok bool) servingStatus {
	if ok {
		return serving
	}
	return notServing
}

func startsNotServing(s *session) error {
	for _, service := range healthsvc.Services() {
		want := expected(service == healthsvc.ServiceLive)
		if err := s.wantCheck(service, want, "nothing has been published yet"); err != nil {
			return err
		}
	}
	_, md, err := s.check(healthsvc.ServiceServing)
	if err != nil {
		return err
	}
	return wantHeader(md, healthsvc.HeaderReason, string(healthsvc.ReasonStarting), "before the first report")
}

func facetsAreIndependent(s *session) error {
	for _, up := range healthsvc.Services() {
		s.publish(only(up))
		for _, service := range healthsvc.Services() {
			want := expected(service == up || service == healthsvc.ServiceLive)
			if err := s.wantCheck(service, want, "the report has only "+up); err != nil {
				return err
			}
		}
	}
	return nil
}

func liveServes(s *session) error {
	w, err := s.watch(healthsvc.ServiceLive)
	if err != nil {
		return err
	}
	if err := w.want(serving, "the server runs"); err != nil {
		return err
	}
	for _, reason := range []healthsvc.Reason{healthsvc.ReasonUnreachable, healthsvc.ReasonNoQuorum, healthsvc.ReasonDraining, healthsvc.ReasonRemoved} {
		s.publish(healthsvc.Report{Reason: reason})
		if err := s.wantCheck(healthsvc.ServiceLive, serving, "a liveness probe must not restart what waits for others; published: "+string(reason)); err != nil {
			return err
		}
	}
	return nil
}

func listAgrees(s *session) error {
	for _, report := range []healthsvc.Report{{}, sample(), only(healthsvc.ServiceLeader)} {
		s.publish(report)
		all, _, err := s.list()
		if err != nil {
			return err
		}
		for _, service := range healthsvc.Services() {
			got, ok := all[service]
			if !ok {
				return fmt.Errorf("grpc.health.v1 List lacks %q, has %d names", service, len(all))
			}
			if err := s.wantCheck(service, got, "List says so"); err != nil {
				return err
			}
		}
	}
	return nil
}

func unknownNames(s *session) error {
	s.publish(sample())
	for _, name := range []string{"etcd.nonsense", "etcd.serving ", "ETCD.SERVING", "etcd."} {
		_, _, err := s.check(name)
		if got := status.Code(err); got != codes.NotFound {
			return fmt.Errorf("grpc.health.v1 Check(%q): code %v, want %v", name, got, codes.NotFound)
		}
		w, err := s.watch(name)
		if err != nil {
			return err
		}
		if err := w.want(unknown, "the name is not in the contract"); err != nil {
			return err
		}
		// The stream must still be open: what ends it is our going away.
		w.cancel()
		if _, err := w.stream.Recv(); status.Code(err) != codes.Canceled {
			return fmt.Errorf("grpc.health.v1 Watch(%q) ended with %v, want it open until the client leaves", name, err)
		}
	}
	return nil
}

// wantHeader compares one header.
func wantHeader(md metadata.MD, key, want, why string) error {
	if got := md.Get(key); !slices.Equal(got, []string{want}) {
		return fmt.Errorf("header %s = %q, want %q: %s", key, got, want, why)
	}
	return nil
}

// wantSample compares all headers of an answer with those of sample.
func wantSample(md metadata.MD, of string) error {
	var errs []error
	for key, want := range map[string]string{
		healthsvc.HeaderClusterID: "cdf818194e3a8c32",
		healthsvc.HeaderMemberID:  "8e9e05c52164694d",
		healthsvc.HeaderLeaderID:  "91bc3c398fb3c146",
		healthsvc.HeaderRaftTerm:  "7",
		healthsvc.HeaderReason:    "nospace",
		healthsvc.HeaderShimStart: "1700000000123456789",
		healthsvc.HeaderRoundTrip: "1500",
		healthsvc.HeaderPoll:      "750",
	} {
		errs = append(errs, wantHeader(md, key, want, "in the answer of "+of))
	}
	_, err := proofAge(md)
	return errors.Join(append(errs, err)...)
}

func proofAge(md metadata.MD) (time.Duration, error) {
	got := md.Get(healthsvc.HeaderProofAge)
	if len(got) != 1 {
		return 0, fmt.Errorf("header %s = %q, want one number of milliseconds", healthsvc.HeaderProofAge, got)
	}
	ms, err := strconv.ParseUint(got[0], 10, 32)
	if err != nil {
		return 0, fmt.Errorf("header %s: %w, want a small number of milliseconds", healthsvc.HeaderProofAge, err)
	}
	return time.Duration(ms) * time.Millisecond, nil
}

func checkHeaders(s *session) error {
	s.publish(sample())
	for _, service := range healthsvc.Services() {
		_, md, err := s.check(service)
		if err != nil {
			return err
		}
		if err := wantSample(md, "Check "+service); err != nil {
			return err
		}
	}
	return nil
}

func watchHeaders(s *session) error {
	s.publish(sample())
	for _, service := range healthsvc.Services() {
		w, err := s.watch(service)
		if err != nil {
			return err
		}
		md, err := w.stream.Header()
		if err != nil {
			return fmt.Errorf("grpc.health.v1 Watch(%q): headers: %w", service, err)
		}
		if err := wantSample(md, "Watch "+service); err != nil {
			return err
		}
	}
	return nil
}

func listHeaders(s *session) error {
	s.publish(sample())
	_, md, err := s.list()
	if err != nil {
		return err
	}
	return wantSample(md, "List")
}

func noHeadersForNothing(s *session) error {
	s.publish(sample())
	s.publish(healthsvc.Report{Serving: true})
	_, md, err := s.check(healthsvc.ServiceServing)
	if err != nil {
		return err
	}
	for _, key := range []string{
		healthsvc.HeaderClusterID, healthsvc.HeaderMemberID, healthsvc.HeaderLeaderID, healthsvc.HeaderRaftTerm,
		healthsvc.HeaderReason, healthsvc.HeaderShimStart, healthsvc.HeaderProofAge, healthsvc.HeaderRoundTrip, healthsvc.HeaderPoll,
	} {
		if got := md.Get(key); len(got) > 0 && !(len(got) == 1 && strings.Trim(got[0], "0") == "") {
			return fmt.Errorf("header %s = %q, want it absent (or zero): the report does not know it", key, got)
		}
	}
	return nil
}

func proofAgeGrows(s *session) error {
	report := sample()
	report.LastProof = time.Now().Add(-time.Minute)
	s.publish(report)
	_, md, err := s.check(healthsvc.ServiceServing)
	if err != nil {
		return err
	}
	age, err := proofAge(md)
	if err != nil {
		return err
	}
	if age < time.Minute || age > time.Minute+patience {
		return fmt.Errorf("header %s says %v, want about a minute: it is measured from LastProof to the answer", healthsvc.HeaderProofAge, age)
	}
	report.LastProof = time.Now().Add(time.Hour)
	s.publish(report)
	_, md, err = s.check(healthsvc.ServiceServing)
	if err != nil {
		return err
	}
	_, err = proofAge(md) // never negative, though the clock was set back
	return err
}

func strangeReason(s *session) error {
	for _, reason := range []healthsvc.Reason{"größer\x00\n", healthsvc.Reason(strings.Repeat("x", 100_000))} {
		report := sample()
		report.Reason = reason
		s.publish(report)
		status, md, err := s.check(healthsvc.ServiceServing)
		if err != nil {
			return fmt.Errorf("grpc.health.v1 Check with a reason of %d strange bytes: %w", len(reason), err)
		}
		if status != serving {
			return fmt.Errorf("grpc.health.v1 Check with a reason of %d strange bytes = %v, want %v", len(reason), status, serving)
		}
		if err := wantHeader(md, healthsvc.HeaderMemberID, "8e9e05c52164694d", "beside a strange reason"); err != nil {
			return err
		}
	}
	return nil
}

func watchBeginsWithPresent(s *session) error {
	for _, up := range healthsvc.Services() {
		s.publish(only(up))
		for _, service := range healthsvc.Services() {
			w, err := s.watch(service)
			if err != nil {
				return err
			}
			want := expected(service == up || service == healthsvc.ServiceLive)
			if err := w.want(want, "a late watcher begins with the present; published was only "+up); err != nil {
				return err
			}
			w.cancel()
		}
	}
	return nil
}

func watchPushesInOrder(s *session) error {
	for _, service := range healthsvc.Services() {
		if service == healthsvc.ServiceLive {
			continue
		}
		s.publish(healthsvc.Report{})
		w, err := s.watch(service)
		if err != nil {
			return err
		}
		if err := w.want(notServing, "at first"); err != nil {
			return err
		}
		for range 3 {
			s.publish(only(service))
			if err := w.want(serving, "it was just published"); err != nil {
				return err
			}
			s.publish(healthsvc.Report{Reason: healthsvc.ReasonNoQuorum})
			if err := w.want(notServing, "it was just published"); err != nil {
				return err
			}
		}
		w.cancel()
	}
	return nil
}

func watchDoesNotRepeat(s *session) error {
	s.publish(sample())
	w, err := s.watch(healthsvc.ServiceServing)
	if err != nil {
		return err
	}
	if err := w.want(serving, "at first"); err != nil {
		return err
	}
	for range 10 {
		report := sample()
		report.Term++
		s.publish(report)
		// An answer in between gives a server that repeats itself the time to do so.
		if err := s.wantCheck(healthsvc.ServiceServing, serving, "nothing changed"); err != nil {
			return err
		}
	}
	s.publish(healthsvc.Report{})
	return w.want(notServing, "the status did not change before, so this is the next message")
}

func slowWatcherGetsLatest(s *session) error {
	w, err := s.watch(healthsvc.ServiceServing)
	if err != nil {
		return err
	}
	if err := w.want(notServing, "at first"); err != nil {
		return err
	}
	for range 1000 {
		s.publish(healthsvc.Report{})
		s.publish(sample())
	}
	return w.settlesAt(serving, "however many were left out, the last one published comes last")
}

func watchersAreIndependent(s *session) error {
	gone, err := s.watch(healthsvc.ServiceServing)
	if err != nil {
		return err
	}
	stays, err := s.watch(healthsvc.ServiceServing)
	if err != nil {
		return err
	}
	other, err := s.watch(healthsvc.ServiceQuorum)
	if err != nil {
		return err
	}
	for _, w := range []*watcher{gone, stays, other} {
		if err := w.want(notServing, "at first"); err != nil {
			return err
		}
	}
	gone.cancel()
	s.publish(healthsvc.Report{Serving: true, Quorum: true})
	for _, w := range []*watcher{stays, other} {
		if err := w.want(serving, "another watcher's leaving concerns nobody"); err != nil {
			return err
		}
	}
	return nil
}

// answersAreWhole publishes reports whose term tells their status, while asking.
func answersAreWhole(s *session) error {
	var publishing sync.WaitGroup
	defer publishing.Wait()
	done := make(chan struct{})
	defer close(done)
	publishing.Go(func() {
		for term := uint64(2); ; term++ {
			select {
			case <-done:
				return
			default:
				s.publish(healthsvc.Report{Identity: healthsvc.Identity{Term: term}, Serving: term%2 == 1})
				runtime.Gosched() // on one processor an answer would wait for a time slice at each step of its way
			}
		}
	})
	for range 200 {
		got, md, err := s.check(healthsvc.ServiceServing)
		if err != nil {
			return err
		}
		terms := md.Get(healthsvc.HeaderRaftTerm)
		if len(terms) == 0 {
			continue // nothing published yet
		}
		term, err := strconv.ParseUint(terms[0], 10, 64)
		if err != nil {
			return fmt.Errorf("header %s: %w", healthsvc.HeaderRaftTerm, err)
		}
		if want := expected(term%2 == 1); got != want {
			return fmt.Errorf("grpc.health.v1 Check = %v with term %d, want %v: status and headers are of different reports", got, term, want)
		}
	}
	return nil
}

func stopEnds(s *session) error {
	s.publish(sample())
	var watchers []*watcher
	for _, service := range healthsvc.Services() {
		w, err := s.watch(service)
		if err != nil {
			return err
		}
		if _, err := w.stream.Recv(); err != nil {
			return fmt.Errorf("grpc.health.v1 Watch(%q): first message: %w", service, err)
		}
		watchers = append(watchers, w)
	}
	s.stop()
	s.stop() // twice is as good as once
	for _, w := range watchers {
		for {
			_, err := w.stream.Recv()
			if err == nil {
				continue // a last word is allowed
			}
			if got := status.Code(err); got != codes.Unavailable {
				return fmt.Errorf("grpc.health.v1 Watch(%q) ended with %w, want %v: it makes clients go elsewhere", w.service, err, codes.Unavailable)
			}
			break
		}
	}
	for _, service := range healthsvc.Services() {
		if _, _, err := s.check(service); status.Code(err) != codes.Unavailable {
			return fmt.Errorf("grpc.health.v1 Check(%q) after the stop: %v, want %v", service, err, codes.Unavailable)
		}
	}
	return nil
}
