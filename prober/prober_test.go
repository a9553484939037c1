package prober

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"log/slog"
	"math/big"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"

	"github.com/quorumwise/quorumwise/healthsvc"
)

var statusNotFound = status.Error(codes.NotFound, "unknown service")

// grades returns the grades in order, for instance "healthy suspect healthy".
func grades(p *Prober) string {
	var out []string
	for _, v := range p.Snapshot().Verdicts {
		out = append(out, v.Grade.String())
	}
	return strings.Join(out, " ")
}

// within waits until the grades are as wanted, and returns how long it took.
func within(t *testing.T, p *Prober, limit time.Duration, want string) time.Duration {
	t.Helper()
	begin := time.Now()
	for {
		synctest.Wait()
		took := time.Since(begin)
		if grades(p) == want {
			return took
		}
		if took >= limit {
			t.Fatalf("after %v the grades are %q, want %q within %v; verdicts: %+v", took, grades(p), want, limit, p.Snapshot().Verdicts)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// stays fails when the grades are anything else during d.
func stays(t *testing.T, p *Prober, d time.Duration, want string) {
	t.Helper()
	for begin := time.Now(); time.Since(begin) < d; time.Sleep(10 * time.Millisecond) {
		synctest.Wait()
		if got := grades(p); got != want {
			t.Fatalf("after %v the grades are %q, want %q throughout %v; verdicts: %+v", time.Since(begin), got, want, d, p.Snapshot().Verdicts)
		}
	}
}

func TestNotServingIsSuspectAtOnceAndUnhealthyAfterHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ms := newMembers(t, true, "a", "b", "c")
		p := ms.prober(t, Config{})
		within(t, p, time.Second, "healthy healthy healthy")
		time.Sleep(777 * time.Millisecond)
		ms.all[0].say(false, healthsvc.ReasonNoQuorum)
		if took := within(t, p, 10*time.Millisecond, "suspect healthy healthy"); took > 0 {
			t.Errorf("suspect after %v, want at once: new calls go there until then", took)
		}
		took := within(t, p, 350*time.Millisecond, "unhealthy healthy healthy")
		if took < 295*time.Millisecond {
			t.Errorf("unhealthy after %v, want 300ms: a lost message must not move a stream", took)
		}
		v, _ := p.Snapshot().Verdict("a:2379")
		if v.Reason != string(healthsvc.ReasonNoQuorum) || v.Source != SourceShim || v.Member != 1 {
			t.Errorf("verdict is %+v, want the shim's reason, source and member", v)
		}
		ms.all[0].say(true, "")
		within(t, p, 60*time.Millisecond, "healthy healthy healthy")
	})
}

func TestSilentCutIsLeftWithinOneSecond(t *testing.T) {
	for _, state := range []linkState{linkCut, linkFrozen} {
		for phase := range 4 {
			synctest.Test(t, func(t *testing.T) {
				ms := newMembers(t, true, "a", "b", "c")
				p := ms.prober(t, Config{})
				within(t, p, time.Second, "healthy healthy healthy")
				time.Sleep(2*time.Second + time.Duration(phase)*143*time.Millisecond)
				ms.all[0].link.set(state)
				took := within(t, p, time.Second, "unhealthy healthy healthy")
				t.Logf("link state %d, phase %d: unhealthy after %v", state, phase, took)
				stays(t, p, 5*time.Second, "unhealthy healthy healthy")
				ms.all[0].link.set(linkUp)
				back := within(t, p, 3500*time.Millisecond, "healthy healthy healthy")
				t.Logf("back after %v", back)
			})
		}
	}
}

func TestWithoutShimCutFollowerIsLeftWithinTwoSeconds(t *testing.T) {
	for phase := range 4 {
		synctest.Test(t, func(t *testing.T) {
			ms := newMembers(t, false, "a", "b", "c")
			p := ms.prober(t, Config{})
			within(t, p, 2*time.Second, "healthy healthy healthy")
			time.Sleep(3*time.Second + time.Duration(phase)*257*time.Millisecond)
			ms.all[0].stall()
			took := within(t, p, 2*time.Second, "unhealthy healthy healthy")
			t.Logf("phase %d: unhealthy after %v", phase, took)
			stays(t, p, 5*time.Second, "unhealthy healthy healthy") // etcd's own SERVING does not readmit
			ms.all[0].resume()
			within(t, p, 3*time.Second, "healthy healthy healthy")
		})
	}
}

func TestAllSlowTogetherCondemnsNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ms := newMembers(t, false, "a", "b", "c")
		p := ms.prober(t, Config{})
		within(t, p, 2*time.Second, "healthy healthy healthy")
		for _, m := range ms.all {
			m.stall()
		}
		for begin := time.Now(); time.Since(begin) < 3*time.Second; time.Sleep(5 * time.Millisecond) {
			synctest.Wait()
			if got := grades(p); strings.Contains(got, "unhealthy") {
				t.Fatalf("grades are %q: nobody may be ejected in favour of an equally slow one", got)
			}
		}
		for _, m := range ms.all {
			m.resume()
		}
		within(t, p, 2*time.Second, "healthy healthy healthy")
	})
}

func TestNoLeaderIsInTheSnapshotWhenItReturns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ms := newMembers(t, true, "a", "b", "c")
		var told []string
		var mu sync.Mutex
		p := ms.prober(t, Config{OnChange: func(s *Snapshot) {
			mu.Lock()
			defer mu.Unlock()
			v, _ := s.Verdict("b:2379")
			told = append(told, v.Grade.String())
		}})
		within(t, p, time.Second, "healthy healthy healthy")
		p.NoLeader("b:2379")
		mu.Lock()
		if v, _ := p.Snapshot().Verdict("b:2379"); v.Grade != Suspect || v.Reason != ReasonNoLeader || told[len(told)-1] != "suspect" {
			t.Errorf("verdict is %+v, OnChange was told %v, want suspect by both: the call is repeated elsewhere now", v, told)
		}
		mu.Unlock()
		time.Sleep(10 * time.Millisecond)
		ms.all[1].say(true, "") // a proof that began later
		within(t, p, 600*time.Millisecond, "healthy healthy healthy")
		p.NoLeader("nowhere:1") // an address that is not ours is nobody's concern
	})
}

func TestOverdueCallIsSettledAgainstServingShim(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ms := newMembers(t, true, "a", "b", "c")
		p := ms.prober(t, Config{})
		within(t, p, time.Second, "healthy healthy healthy")
		time.Sleep(time.Second)
		ms.all[0].stall()
		stays(t, p, time.Second, "healthy healthy healthy")
		p.Prove("a:2379")
		took := within(t, p, 350*time.Millisecond, "suspect healthy healthy")
		t.Logf("suspect %v after the question", took)
		within(t, p, 800*time.Millisecond, "unhealthy healthy healthy")
		ms.all[0].resume()
		within(t, p, 3*time.Second, "healthy healthy healthy")
	})
}

func TestProofsOnDemandAreRateLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ms := newMembers(t, true, "a", "b", "c")
		p := ms.prober(t, Config{})
		within(t, p, time.Second, "healthy healthy healthy")
		for range 1000 {
			p.Prove("a:2379")
			time.Sleep(time.Millisecond)
		}
		ms.all[0].set(func() {
			if n := ms.all[0].proofs; n < 8 || n > 11 {
				t.Errorf("1000 questions in 1 s made %d proofs, want about 10: one per 100 ms", n)
			}
		})
	})
}

func TestRefusedPermissionNeverEjects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ms := newMembers(t, false, "a", "b", "c")
		p := ms.prober(t, Config{})
		within(t, p, 2*time.Second, "healthy healthy healthy")
		ms.all[0].set(func() { ms.all[0].refusal = status.Error(codes.Unauthenticated, "token expired") })
		ms.all[1].set(func() { ms.all[1].refusal = status.Error(codes.PermissionDenied, "no") })
		stays(t, p, 5*time.Second, "healthy healthy healthy")
	})
}

func TestWithoutShimSaysSoLoudlyOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log lockedBuffer
		ms := newMembers(t, false, "a", "b")
		p := ms.prober(t, Config{Logger: slog.New(slog.NewTextHandler(&log, nil))})
		within(t, p, 2*time.Second, "healthy healthy")
		time.Sleep(65 * time.Second)
		if n := strings.Count(log.String(), "level=WARN msg=\"endpoint follows no reports; judged without a shim\""); n != 2 {
			t.Errorf("%d warnings, want one for each of 2 endpoints; log:\n%s", n, log.String())
		}
		if n := strings.Count(log.String(), "\n"); n != 4 {
			t.Errorf("%d lines of log in a minute, want 2 warnings and 2 changes: nothing at steady state\n%s", n, log.String())
		}
	})
}

func TestWrongShimIsIgnoredWithWarning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log lockedBuffer
		ms := newMembers(t, true, "a", "b", "c")
		ms.all[0].report(false, healthsvc.ReasonNoQuorum, 2) // b's
		p := ms.prober(t, Config{Logger: slog.New(slog.NewTextHandler(&log, nil))})
		within(t, p, 2*time.Second, "healthy healthy healthy")
		v, _ := p.Snapshot().Verdict("a:2379")
		if v.Reason != ReasonWrongShim || v.Source != SourceStock {
			t.Errorf("verdict is %+v, want it judged without the shim", v)
		}
		if !strings.Contains(log.String(), "speaks for another member") {
			t.Errorf("nothing in the log tells that the shim is another member's:\n%s", log.String())
		}
	})
}

func TestServerNameIsTheAuthorityTowardsEtcdAndShim(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ms := newMembers(t, true, "a", "b")
		p := ms.prober(t, Config{})
		within(t, p, time.Second, "healthy healthy")
		for _, m := range ms.all {
			m.set(func() {
				if len(m.authorities) != 1 || !m.authorities[m.name+".example"] {
					t.Errorf("member %s saw authorities %v, want its own name only: certificates bear nothing else", m.name, m.authorities)
				}
			})
		}
	})
}

func TestEachCertificateBearsItsMembersNameOnly(t *testing.T) {
	roots := x509.NewCertPool()
	certs := make(map[string]tls.Certificate)
	for _, n := range []string{"a", "b"} {
		certs[n] = certify(t, roots, n+".example")
	}
	synctest.Test(t, func(t *testing.T) {
		ms := newMembersWith(t, true, func(n string) credentials.TransportCredentials {
			return credentials.NewServerTLSFromCert(&tls.Certificate{Certificate: certs[n].Certificate, PrivateKey: certs[n].PrivateKey})
		}, "a", "b")
		clock := func() time.Time { return certTime }
		p := ms.prober(t, Config{Credentials: credentials.NewTLS(&tls.Config{RootCAs: roots, Time: clock})})
		within(t, p, 2*time.Second, "healthy healthy")
		for _, v := range p.Snapshot().Verdicts {
			if v.Source != SourceShim {
				t.Errorf("%s is judged by %v, want its shim: reached over TLS with the same names", v.Address, v.Source)
			}
		}
	})
	synctest.Test(t, func(t *testing.T) {
		ms := newMembersWith(t, true, func(n string) credentials.TransportCredentials {
			return credentials.NewServerTLSFromCert(&tls.Certificate{Certificate: certs[n].Certificate, PrivateKey: certs[n].PrivateKey})
		}, "a", "b")
		p := ms.prober(t, Config{})
		time.Sleep(5 * time.Second)
		synctest.Wait()
		if got := grades(p); got != "suspect suspect" {
			t.Errorf("plain text towards TLS: grades are %q, want suspect: there is no way through", got)
		}
	})
}

var certTime = time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)

// certify makes a self-signed certificate for one name, and trusts it.
func certify(t *testing.T, roots *x509.CertPool, name string) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: []string{name}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: certTime.Add(-time.Hour), NotAfter: certTime.Add(time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	roots.AddCert(leaf)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

func TestCloseAtAnyMoment(t *testing.T) {
	faults := map[string]func(*members){
		"all well": func(*members) {},
		"all cut": func(ms *members) {
			for _, m := range ms.all {
				m.link.set(linkCut)
			}
		},
		"all frozen": func(ms *members) {
			for _, m := range ms.all {
				m.link.set(linkFrozen)
			}
		},
		"all refused": func(ms *members) {
			for _, m := range ms.all {
				m.link.set(linkRefused)
			}
		},
		"proofs hang": func(ms *members) {
			for _, m := range ms.all {
				m.stall()
			}
		},
		"one is cut": func(ms *members) { ms.all[0].link.set(linkCut) },
	}
	for name, fault := range faults {
		for _, early := range []bool{true, false} {
			for _, after := range []time.Duration{0, time.Millisecond, 300 * time.Millisecond, 1100 * time.Millisecond, 7 * time.Second} {
				synctest.Test(t, func(t *testing.T) {
					ms := newMembers(t, name == "all well" || name == "one is cut", "a", "b", "c")
					if early {
						fault(ms)
					}
					p := ms.prober(t, Config{})
					if !early {
						time.Sleep(time.Second)
						fault(ms)
					}
					time.Sleep(after)
					begin := time.Now()
					p.Close()
					p.Close()
					if took := time.Since(begin); took > time.Second {
						t.Errorf("%s, closed after %v: Close took %v, want 1s at most", name, after, took)
					}
					if n := Shared(); n != 0 {
						t.Errorf("%s, closed after %v: %d probes are left", name, after, n)
					}
					p.NoLeader("a:2379") // must not hang
					p.Prove("a:2379")
					p.SetEndpoints(nil)
				})
			}
		}
	}
}

func TestProbersOfOneProcessShareProbes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const probers = 2000
		ms := newMembers(t, true, "a", "b", "c", "d", "e")
		all := make([]*Prober, 0, probers)
		before := runtime.NumGoroutine()
		for range probers {
			all = append(all, ms.prober(t, Config{ShareKey: "one cluster"}))
		}
		for _, p := range all {
			within(t, p, time.Second, "healthy healthy healthy healthy healthy")
		}
		if n := Shared(); n != 5 {
			t.Errorf("%d probes for %d probers of 5 endpoints, want 5", n, probers)
		}
		if n := ms.dialled(); n != 10 {
			t.Errorf("%d connections, want one to etcd and one to the shim of each endpoint", n)
		}
		if n := runtime.NumGoroutine() - before; n > probers+300 {
			t.Errorf("%d goroutines, want one per prober and some for 5 probes", n)
		} else {
			t.Logf("%d goroutines for %d probers of 5 endpoints", n, probers)
		}
		var checks int
		ms.all[0].set(func() { checks = ms.all[0].checks })
		time.Sleep(10 * time.Second)
		synctest.Wait()
		ms.all[0].set(func() {
			if n := ms.all[0].checks - checks; n > 25 {
				t.Errorf("%d checks in 10 s, want about 20: probers must not add to the load", n)
			}
		})
		ms.all[0].say(false, healthsvc.ReasonNoQuorum)
		for _, p := range all {
			within(t, p, 400*time.Millisecond, "unhealthy healthy healthy healthy healthy")
		}
		for _, p := range all {
			p.Close()
		}
		if n := Shared(); n != 0 {
			t.Errorf("%d probes are left after all probers were closed", n)
		}
	})
}

func TestSubscribersOfOneProbeDoNotDisturbEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ms := newMembers(t, true, "a", "b", "c")
		quiet := ms.prober(t, Config{ShareKey: 1})
		within(t, quiet, time.Second, "healthy healthy healthy")
		var busy sync.WaitGroup
		for i := range 8 {
			busy.Go(func() {
				for range 20 {
					p := ms.prober(t, Config{ShareKey: 1, Hold: 300 * time.Millisecond})
					p.NoLeader("a:2379")
					p.Prove("b:2379")
					p.SetEndpoints(ms.endpoints()[:1+i%3])
					time.Sleep(time.Duration(i) * 7 * time.Millisecond)
					p.NoLeader("b:2379")
					p.Close()
				}
			})
		}
		stays(t, quiet, 3*time.Second, "healthy healthy healthy")
		busy.Wait()
		if n := Shared(); n != 3 {
			t.Errorf("%d probes, want the 3 of the prober that is left", n)
		}
	})
}

func TestServicesInEtcdsProcessAreFoundOnItsPort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ms := newMembers(t, false, "a", "b", "c")
		for _, m := range ms.all {
			m.restartInProcess(t)
		}
		p := ms.prober(t, Config{})
		within(t, p, 2*time.Second, "healthy healthy healthy")
		v, _ := p.Snapshot().Verdict("a:2379")
		if v.Source != SourceInProcess || v.Reason != "" {
			t.Errorf("verdict is %+v, want it by the services in etcd's process", v)
		}
		time.Sleep(500 * time.Millisecond) // a proof of the first moment is older than the loss
		ms.all[0].say(false, healthsvc.ReasonNoQuorum)
		within(t, p, 10*time.Millisecond, "suspect healthy healthy")
		within(t, p, 350*time.Millisecond, "unhealthy healthy healthy")
	})
}

func TestShimThatIsInstalledLaterIsFoundWithinAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ms := newMembers(t, false, "a", "b")
		p := ms.prober(t, Config{})
		within(t, p, 2*time.Second, "healthy healthy")
		time.Sleep(10 * time.Minute)
		ms.all[0].startShim(1)
		time.Sleep(61 * time.Second)
		synctest.Wait()
		if v, _ := p.Snapshot().Verdict("a:2379"); v.Source != SourceShim {
			t.Errorf("verdict is %+v a minute after the shim was installed, want it by the shim", v)
		}
	})
}

func TestShimThatDiesCostsNobodyItsGrade(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ms := newMembers(t, true, "a", "b", "c")
		p := ms.prober(t, Config{})
		within(t, p, time.Second, "healthy healthy healthy")
		for _, m := range ms.all {
			m.killShim()
		}
		stays(t, p, 5*time.Second, "healthy healthy healthy")
		if v, _ := p.Snapshot().Verdict("a:2379"); v.Source != SourceStock {
			t.Errorf("verdict is %+v, want etcd itself asked: the shims are gone", v)
		}
	})
}

func TestSetEndpointsKeepsStandingOfThoseThatStay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ms := newMembers(t, true, "a", "b", "c")
		p := ms.prober(t, Config{})
		within(t, p, time.Second, "healthy healthy healthy")
		before, _ := p.Snapshot().Verdict("b:2379")
		dials := ms.dialled()
		eps := ms.endpoints()
		p.SetEndpoints([]Endpoint{eps[1], eps[2], eps[1]})
		synctest.Wait()
		if got := grades(p); got != "healthy healthy" {
			t.Errorf("grades are %q, want b and c, each once", got)
		}
		if after, _ := p.Snapshot().Verdict("b:2379"); !after.Since.Equal(before.Since) || ms.dialled() != dials {
			t.Errorf("b is %v since %v after %d new connections, want it untouched since %v", after.Grade, after.Since, ms.dialled()-dials, before.Since)
		}
	})
}

func TestNewRefusesValuesThatMakeNoSense(t *testing.T) {
	for _, c := range []struct {
		cfg  Config
		want string
	}{
		{Config{Poll: -1}, "Config.Poll"},
		{Config{Timeout: 2 * time.Hour}, "Config.Timeout"},
		{Config{Hold: -time.Second}, "Config.Hold"},
		{Config{ElectionTimeout: -1}, "Config.ElectionTimeout"},
		{Config{ShareKey: []int{1}}, "Config.ShareKey"},
	} {
		p, err := New(c.cfg)
		if err == nil {
			p.Close()
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("New(%+v) = %v, want an error that names %s", c.cfg, err, c.want)
		}
	}
}

// lockedBuffer is a log to look into.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
