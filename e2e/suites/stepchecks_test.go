//go:build linux

package suites

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumwise/quorumwise/e2e/report"
	"github.com/quorumwise/quorumwise/healthsvc"
)

func TestStepsFindWhatIsPlanted(t *testing.T) {
	now := []string{"10.0.0.4:2379", "10.0.0.5:2379", "10.0.0.6:2379"}
	const applied = `{"level":"info","msg":"applied snapshot","current-snapshot-index":500}` + "\n"
	for _, c := range []struct {
		name string
		say  func(*Stage)
		want string
	}{
		{"a snapshot was applied", func(st *Stage) { st.judgeSnapshot("m2", "other\n"+applied+"other\n") }, ""},
		{"no snapshot was applied", func(st *Stage) {
			st.judgeSnapshot("m2", `{"level":"info","msg":"saved snapshot","snapshot-index":500}`+"\n")
		}, notShown + "m2 caught up without a snapshot"},
		{"the log is empty", func(st *Stage) { st.judgeSnapshot("m2", "") }, notShown + "m2 caught up without a snapshot"},

		{"defragmenting takes long", func(st *Stage) { st.judgeAbsence(absence + 1) }, ""},
		{"defragmenting is over too soon", func(st *Stage) { st.judgeAbsence(absence) }, notShown + "defragmenting took 1s; want more than 1s"},

		{"followed, in another order", func(st *Stage) { st.judgeFollower([]string{now[2], now[0], now[1]}, now, "") }, ""},
		{"one endpoint is stale", func(st *Stage) { st.judgeFollower([]string{now[0], now[1], "10.0.0.3:2379"}, now, "") }, lateClaim + "a client that follows by AutoSync alone knows [10.0.0.3:2379 "},
		{"one endpoint is left over", func(st *Stage) { st.judgeFollower(append([]string{"10.0.0.3:2379"}, now...), now, "") }, lateClaim + "a client that follows by AutoSync alone knows"},
		{"one endpoint is missing", func(st *Stage) { st.judgeFollower(now[:2], now, "") }, lateClaim + "a client that follows by AutoSync alone knows"},
		{"it knows none", func(st *Stage) { st.judgeFollower(nil, now, "") }, lateClaim + "a client that follows by AutoSync alone knows []"},
		{"its watch is broken", func(st *Stage) { st.judgeFollower(now, now, "version 9 came, want 8") }, brokenClaim + "the watch of a client that follows by AutoSync alone: version 9 came, want 8"},
	} {
		t.Run(c.name, func(t *testing.T) { found(t, remarks(c.say), c.want) })
	}
}

func TestShimsSayWhatIsPlanted(t *testing.T) {
	full := map[string]bool{healthsvc.ServiceServing: true, healthsvc.ServiceRead: true, healthsvc.ServiceWrite: false}
	free := map[string]bool{healthsvc.ServiceServing: true, healthsvc.ServiceRead: true, healthsvc.ServiceWrite: true}
	noReads := map[string]bool{healthsvc.ServiceServing: true, healthsvc.ServiceRead: false, healthsvc.ServiceWrite: false}
	gone := map[string]bool{healthsvc.ServiceServing: false, healthsvc.ServiceRead: true, healthsvc.ServiceWrite: false}
	const ms = time.Millisecond
	for _, c := range []struct {
		name string
		says map[string]bool // m2, at first
		turn time.Duration   // when it comes to say full; 0: never
		want string
	}{
		{"at once", full, 0, ""},
		{"in time", free, saysWithin - 60*ms, ""},
		{"too late", free, saysWithin + 60*ms, lateClaim + "the shim of m2 says "},
		{"a moment too late", free, saysWithin + 10*ms, lateClaim + "the shim of m2 says "},
		{"it goes on taking writes", free, 0, lateClaim + "the shim of m2 says map[etcd.read:true etcd.serving:true etcd.write:true]"},
		{"it takes no reads", noReads, 0, lateClaim + "the shim of m2 says map[etcd.read:false"},
		{"it does not serve", gone, 0, lateClaim + "the shim of m2 says map[etcd.read:true etcd.serving:false"},
		{"it says too little", map[string]bool{healthsvc.ServiceServing: true, healthsvc.ServiceRead: true}, 0, lateClaim + "the shim of m2 says"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				asks := map[string]asker{
					"m1": func(context.Context) (map[string]bool, error) { return full, nil },
					"m2": func(context.Context) (map[string]bool, error) {
						if c.turn > 0 && time.Since(began) >= c.turn {
							return full, nil
						}
						return c.says, nil
					},
					"m3": func(context.Context) (map[string]bool, error) { return full, nil },
				}
				found(t, remarks(func(st *Stage) {
					if err := st.claimSays(t.Context(), asks, full); err != nil {
						t.Error(err)
					}
				}), c.want)
			})
		})
	}
}

func TestShimThatDoesNotAnswerCannotBeJudged(t *testing.T) {
	silent := errors.New("silent")
	st := &Stage{Log: slog.New(slog.DiscardHandler)}
	err := st.claimSays(t.Context(), map[string]asker{"m1": func(context.Context) (map[string]bool, error) { return nil, silent }}, nil)
	if !errors.Is(err, silent) {
		t.Errorf("%v; want that the shim is silent", err)
	}
}

// What steps claim counts for nothing where the scenario does not read it.
func TestScenariosReadWhatTheirStepsClaim(t *testing.T) {
	const both = brokenClaim + lateClaim
	claims := map[string]string{
		"herd": both, "unlock-on-a-cut-member": both, "members-replaced": both,
		"quota-full": lateClaim, "defragmented-online": brokenClaim, "cut-until-a-snapshot": brokenClaim,
	}
	for _, sc := range All() {
		of := claims[sc.Name]
		delete(claims, sc.Name)
		e := sound()
		e.Marks = append(e.Marks, report.Mark{Text: brokenClaim + "planted"}, report.Mark{Text: lateClaim + "planted"})
		if strings.Contains(of, brokenClaim) && (sc.Judge == nil || !slices.Contains(sc.Judge(e), "planted")) {
			t.Errorf("%s passes though a step found a claim broken", sc.Name)
		}
		if strings.Contains(of, lateClaim) && (sc.Timing == nil || !slices.Contains(sc.Timing(e).texts(), "planted")) {
			t.Errorf("%s passes though a step found a claim late", sc.Name)
		}
	}
	if len(claims) > 0 {
		t.Errorf("no scenario is named %v", sorted(claims))
	}
}
