//go:build linux

package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/version"

	"github.com/quorumwise/quorumwise/e2e/nethosts"
	"github.com/quorumwise/quorumwise/e2e/realetcd"
	"github.com/quorumwise/quorumwise/e2e/report"
	"github.com/quorumwise/quorumwise/e2e/suites"
)

// noLab fails the test that gets as far as the lab.
func noLab(t *testing.T) func() error {
	return func() error {
		t.Error("the lab is entered")
		return nil
	}
}

func TestBadInputIsRefusedBeforeAnythingStarts(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, []byte("no program"), 0o644); err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(dir, "program")
	if err := os.WriteFile(program, nil, 0o755); err != nil {
		t.Fatal(err)
	}
	old, odd := filepath.Join(dir, "old"), filepath.Join(dir, "odd")
	for _, path := range []string{old, odd} {
		if err := os.WriteFile(path, nil, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	from := &shelf{says: map[string]string{old: "3.4.33", odd: "4.0.0"}, fail: map[string]error{
		program: errors.New("it printed no version"),
		"3.9":   &realetcd.UnknownVersionError{Version: "3.9", Known: []string{"3.7.3"}},
	}}
	for _, c := range []struct {
		args string
		want string
	}{
		{"run nonsense", `no scenario fits "nonsense". Suites are: matrix, doubles, versions, soak`},
		{"run cut nonsense", `no scenario fits "nonsense"`},
		{"list nonsense", `no scenario fits "nonsense"`},
		{"run [", `pattern "[" is no glob`},
		{"run --etcd " + dir + "/none", "there is no such file"},
		{"run --etcd " + dir, "is no file"},
		{"run --etcd " + file, "may not be executed"},
		{"run --etcd " + program, "is no etcd server: it printed no version"},
		{"run --etcd " + program + " --etcd-version 3.7", "give one of them"},
		{"run --etcd " + old, "etcd 3.4.33: want 3.5 or a later 3.x"},
		{"run --etcd " + odd, "etcd 4.0.0: want 3.5 or a later 3.x"},
		{"run --etcd-version 3.4", "etcd 3.4: want 3.5 or a later 3.x"},
		{"run --etcd-version 4.0", "etcd 4.0: want 3.5 or a later 3.x"},
		{"run --etcd-version newest", `--etcd-version "newest" is no version`},
		{"run --etcd-version 3.9", "there is no etcd 3.9: there are 3.7.3"},
		{"run --members 2", "3 to 9 members"},
		{"run --members 10", "3 to 9 members"},
		{"run --members few", `invalid argument "few"`},
		{"run --duration -1s", "--duration -1s is before its begin"},
		{"run --duration soon", "invalid argument"},
		{"run --parallel 0", "--parallel 0"},
		{"run --report " + file, "cannot be made"},
		{"run --colour red", "unknown flag: --colour"},
		{"play", `unknown command "play"`},
	} {
		_, complaint, status := call(t, world{servers: from, enter: noLab(t)}, strings.Fields(c.args)...)
		if status != statusUsage || !strings.Contains(complaint, c.want) {
			t.Errorf("%s: status %d, %q; want status %d and %q", c.args, status, complaint, statusUsage, c.want)
		}
	}
}

func TestMissingLabIsToldWithItsOwnStatus(t *testing.T) {
	missing := &nethosts.MissingError{What: []string{"the command nft: install nftables"}}
	_, complaint, status := call(t, world{enter: func() error { return missing }}, "run")
	if status != statusMissing || !strings.Contains(complaint, "the command nft: install nftables") {
		t.Errorf("status %d, %q; want status %d and what is missing", status, complaint, statusMissing)
	}
}

func TestCtrlCWhileTheLabIsEnteredIsNoMissingLab(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	_, complaint, status := callWithin(ctx, t, world{enter: func() error { cancel(); return errors.New("interrupted") }}, "run")
	if status != statusInterrupted || complaint != "" {
		t.Errorf("status %d, %q; want status %d and no complaint", status, complaint, statusInterrupted)
	}
}

func TestCtrlCWhileAServerIsBuiltIsNoMissingServer(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	_, complaint, status := callWithin(ctx, t, world{servers: &shelf{slow: time.Hour}, enter: noLab(t)}, "run")
	if status != statusInterrupted || complaint != "" {
		t.Errorf("status %d, %q; want status %d and no complaint", status, complaint, statusInterrupted)
	}
}

func TestServersThatScenariosNameAreBuiltBefore(t *testing.T) {
	from := &shelf{}
	etcd := filepath.Join(t.TempDir(), "etcd")
	if err := os.WriteFile(etcd, nil, 0o755); err != nil {
		t.Fatal(err)
	}
	upgrade := suites.Match("operations/upgraded-*")
	_, complaint, status := call(t, world{servers: from, catalog: upgrade, play: (&stand{}).player}, "run", "all", "--etcd", etcd, "--report", t.TempDir())
	if want := []string{upgrade[0].Version, version.Version}; status != statusOK || !slices.Equal(from.built, want) {
		t.Errorf("status %d (%s), built %q, want %q: while its steps are played a scenario would wait for minutes", status, complaint, from.built, want)
	}
}

func TestListTellsWhatIsNeededAndWhichEtcdIsPlayed(t *testing.T) {
	for name, want := range map[string]string{
		"follower-cut-3-sidecar":       "3 members",
		"follower-cut-3-in-process":    "3 members, etcd " + version.Version + ", built in",
		"follower-cpu-5-none":          "5 members, control groups",
		"leader-memory-3-sidecar":      "3 members, loop devices, control groups",
		"follower-rate-3-none":         "3 members, /dev/net/tun",
		"leader-delay-5-sidecar":       "5 members, /dev/net/tun",
		"all-answers-late":             "3 members, /dev/net/tun",
		"clock-step-3-none":            "3 members, the Go tool",
		"3.5-cut-follower-none":        "3 members, etcd 3.5",
		"upgraded-from-previous-minor": "3 members, etcd 3.6, then " + version.Version,
	} {
		if got := strings.Join(needs(suites.Match(name)[0]), ", "); got != want {
			t.Errorf("%s needs %q, want %q", name, got, want)
		}
	}
}

func TestServerThatCannotBeBuiltIsMissing(t *testing.T) {
	from := &shelf{fail: map[string]error{"": errors.New("no Go tool")}}
	_, complaint, status := call(t, world{servers: from, enter: noLab(t)}, "run")
	if status != statusMissing || !strings.Contains(complaint, "no Go tool") {
		t.Errorf("status %d, %q; want status %d and why", status, complaint, statusMissing)
	}
}

func TestListAndHelpNeedNoLab(t *testing.T) {
	for _, args := range []string{"list", "list matrix", "help", "--help", "run --help", "list -h", ""} {
		out, complaint, status := call(t, world{enter: noLab(t), servers: nil}, strings.Fields(args)...)
		if status != statusOK || out == "" || complaint != "" {
			t.Errorf("%q: status %d, says %q and %q", args, status, out, complaint)
		}
	}
}

func TestListTellsWhatAScenarioTakes(t *testing.T) {
	out, _, _ := call(t, world{}, "list")
	for _, want := range []string{
		"matrix: 3 scenarios, about 45 s",
		"  cut *         21 s  3 members  a follower loses its peers\n",
		"  leader-cut *  12 s  3 members  the leader loses its peers\n",
		"  cut-5 o       12 s  5 members  likewise, of five\n",         // nothing may happen
		"  two-cut o  12 s  5 members  two of five lose their peers\n", // nothing has to happen
		"  old-cut  12 s  3 members, etcd 3.5  likewise, on an older etcd\n",
		"  soak  72 s  3 members  random faults\n",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in the list:\n%s", want, out)
		}
	}
}

func TestPatternsChooseScenarios(t *testing.T) {
	for _, c := range []struct{ patterns, want string }{
		{"", "cut leader-cut"}, // the quick ones
		{"all", "cut cut-5 leader-cut two-cut old-cut soak"},
		{"cut", "cut"}, // a whole name is no part of others
		{"matrix", "cut cut-5 leader-cut"},
		{"soak", "soak"},
		{"cut-*", "cut-5"},
		{"matrix/*cut", "cut leader-cut"},
		{"two", "two-cut"},
		{"d-cut", "old-cut"},
		{"soak cut", "cut soak"}, // in the order of the list
		{"matrix/cut", "cut"},
	} {
		scs, err := choose(catalog(), strings.Fields(c.patterns))
		var names []string
		for _, sc := range scs {
			names = append(names, sc.Name)
		}
		if got := strings.Join(names, " "); err != nil || got != c.want {
			t.Errorf("%q: %s, %v; want %s", c.patterns, got, err, c.want)
		}
	}
}

// A row of the table of figures can be played by its name.
func TestFaultChoosesItsScenarios(t *testing.T) {
	all := suites.All()
	for _, sc := range all {
		if sc.Fault == "" || sc.Fault == sc.Suite {
			continue
		}
		scs, err := choose(all, []string{sc.Fault})
		if err != nil || !slices.ContainsFunc(scs, func(o suites.Scenario) bool { return o.Name == sc.Name }) {
			t.Errorf("%q chose %d scenarios (%v); want %s among them", sc.Fault, len(scs), err, sc.Name)
		}
		for _, o := range scs {
			if o.Fault != sc.Fault && o.Suite != sc.Fault && o.Name != sc.Fault {
				t.Errorf("%q chose %s, whose fault is %q", sc.Fault, o.Name, o.Fault)
			}
		}
	}
}

func TestNamesOfTheRealCatalogAreUnique(t *testing.T) {
	var names []string
	for _, sc := range suites.All() {
		if slices.Contains(names, sc.Name) {
			t.Errorf("two scenarios are named %s: neither could be played alone", sc.Name)
		}
		if sc.Name == everything || slices.Contains(suiteNames(suites.All()), sc.Name) && sc.Name != sc.Suite {
			t.Errorf("%s means something else on a command line", sc.Name)
		}
		names = append(names, sc.Name)
		if got := needs(sc); len(got) == 0 {
			t.Errorf("%s needs nothing", sc.Name)
		}
	}
}

func TestRunPlaysTheQuickOnesAndWritesTheReport(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "report")
	s := &stand{}
	out, complaint, status := call(t, world{play: s.player}, "run", "--report", dir, "--seed", "7", "--members", "5", "--duration", "3m")
	if status != statusOK || complaint != "" {
		t.Fatalf("status %d, %q\n%s", status, complaint, out)
	}
	if want := []string{"cut", "leader-cut"}; !slices.Equal(s.played, want) {
		t.Errorf("played %v, want %v", s.played, want)
	}
	if s.options.Seed != 7 || s.options.Members != 5 || s.options.Duration != 3*time.Minute || s.options.Binary != "/cache/etcd-" || !filepath.IsAbs(s.options.Dir) {
		t.Errorf("options %+v: want what the flags say", s.options)
	}
	for _, want := range []string{
		"2 scenarios, the quick ones, about 33 s, on etcd 3.7.3 (/cache/etcd-)",
		"seed 7;",
		"1/2 passed  cut  2 s  silence 0.41 s, official client never",
		"2/2 passed  leader-cut",
		"2 passed in ",
		"report: " + filepath.Join(dir, "index.html"),
		"repeat: go run ./e2e/partition run --seed 7 --members 5 --duration 3m0s",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("it does not say %q:\n%s", want, out)
		}
	}
	run := readReport(t, dir)
	if len(run.Scenarios) != 2 || run.Seed != 7 || run.Ended != "" || run.Scenarios[0].Command != "go run ./e2e/partition run cut --seed 7 --members 5 --duration 3m0s" {
		t.Errorf("report: %+v", run)
	}
	if strings.ContainsRune(out, '\x1b') {
		t.Error("control sequences go into a pipe")
	}
}

func readReport(t *testing.T, dir string) report.Run {
	t.Helper()
	f, err := os.Open(filepath.Join(dir, report.JSONName))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	run, err := report.ReadJSON(f)
	if err != nil {
		t.Fatal(err)
	}
	return run
}

func TestStatusSaysIfEverythingPassedOrWasSkipped(t *testing.T) {
	for status, want := range map[report.Status]int{
		report.Passed:  statusOK,
		report.Skipped: statusOK,
		report.Failed:  statusNotOK,
		report.Void:    statusNotOK,
		report.Broken:  statusNotOK,
	} {
		s := &stand{play: func(_ context.Context, sc suites.Scenario, _ suites.Options) (report.Scenario, error) {
			if sc.Name != "cut" {
				return ended(sc, report.Passed), nil
			}
			out := ended(sc, status)
			out.Reason = "because\x1b[31m of\nthis"
			return out, nil
		}}
		out, complaint, got := call(t, world{play: s.player}, "run", "--report", t.TempDir())
		if got != want || complaint != "" {
			t.Errorf("%s: status %d, %q; want %d and no complaint: it stands on the screen", status, got, complaint, want)
		}
		if told := strings.Contains(out, "because?[31m of this"); told != (status != report.Passed) {
			t.Errorf("%s: the reason is told: %v\n%s", status, told, out)
		}
	}
}

func TestSeedIsFoundAndToldWhereNoneIsGiven(t *testing.T) {
	s := &stand{}
	out, _, _ := call(t, world{play: s.player}, "run", "cut", "--report", t.TempDir())
	if s.options.Seed <= 0 || !strings.Contains(out, "--seed ") {
		t.Errorf("seed %d:\n%s", s.options.Seed, out)
	}
}

func TestPreparedOutsideIsNotPreparedAgainInside(t *testing.T) {
	from := &shelf{}
	s := &stand{}
	w := world{play: s.player, servers: from}
	w.enter = func() error {
		pre, err := findPrepared()
		if err != nil || pre == nil || pre.Binary != "/cache/etcd-" || pre.Version != "3.7.3" {
			t.Errorf("inside it finds %+v, %v", pre, err)
		}
		return nil
	}
	if _, complaint, status := call(t, w, "run", "all", "--report", t.TempDir()); status != statusOK {
		t.Fatalf("status %d, %s", status, complaint)
	}
	if want := []string{"", "3.5"}; !slices.Equal(from.built, want) {
		t.Errorf("built %q, want %q: a lab has no network, so every version is fetched before it", from.built, want)
	}
	if os.Getenv(preparedEnv) != "" {
		t.Error("programs of the lab would inherit what is for this one")
	}

	if err := (prepared{Binary: "/given", Version: "1.2.3", Seed: 5}).hand(); err != nil {
		t.Fatal(err)
	}
	w.enter, w.out, w.catalog = func() error { return nil }, new(strings.Builder), catalog()
	cmd := newCommand(w)
	cmd.SetArgs([]string{"run", "cut", "--report", t.TempDir()})
	if err := cmd.ExecuteContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(from.built) != 2 || s.options.Binary != "/given" || s.options.Seed != 5 {
		t.Errorf("built %q, options %+v: inside, what was prepared is used", from.built, s.options)
	}
}

func TestOlderServerThatCannotBeHadStopsNothingElse(t *testing.T) {
	from := &shelf{fail: map[string]error{"3.5": errors.New("no proxy")}}
	s := &stand{}
	if _, _, status := call(t, world{play: s.player, servers: from}, "run", "all", "--report", t.TempDir()); status != statusOK || len(s.played) != 6 {
		t.Errorf("status %d, played %v", status, s.played)
	}
}

func TestArgumentsOfTheLabsProgramsAreToldFromAUsers(t *testing.T) {
	for args, want := range map[string]bool{
		"": true, "serve --etcd-endpoint http://x": true, "{}": true,
		"run": false, "run all": false, "list": false, "help": false, "--help": false,
	} {
		if got := isOfLab(strings.Fields(args)); got != want {
			t.Errorf("%q: %v, want %v", args, got, want)
		}
	}
}

func TestRepeatCommandSurvivesAShell(t *testing.T) {
	set := settings{etcd: "/opt/my etcd/it's", etcdVersion: "", parallel: 2}
	want := `go run ./e2e/partition run 'matrix/*' soak --seed 3 --etcd '/opt/my etcd/it'\''s' --parallel 2`
	if got := set.command(3, "matrix/*", "soak"); got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
}
