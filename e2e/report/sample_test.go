package report_test

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/quorumwise/quorumwise/e2e/report"
)

func ms(n int) time.Duration { return time.Duration(n) * time.Millisecond }

var sampleBegan = time.Date(2026, 11, 29, 14, 3, 7, 0, time.UTC)

// sampleFault is what a made-up fault does to those who see it.
type sampleFault struct {
	name, does, truth, shim, grade, text string
	ours, control                        [2]int // silence, from and to, in ms
}

var sampleFaults = []sampleFault{
	{"cut", "a member loses its peers both ways; its client port stays open", "no-quorum", "not-serving", "unhealthy", "cut %s from its peers", [2]int{400, 760}, [2]int{9000, 13200}},
	{"one-way-out", "what a member sends to its peers is lost; it still hears them", "no-quorum", "not-serving", "unhealthy", "lose what %s sends", [2]int{420, 800}, [2]int{9000, 12800}},
	{"frozen", "etcd stops as by SIGSTOP: it accepts connections and never answers", "frozen", "not-serving", "unhealthy", "freeze etcd on %s", [2]int{380, 700}, [2]int{9200, 13000}},
	{"both-frozen", "etcd and its shim stop as by SIGSTOP", "frozen", "silent", "unhealthy", "freeze everything on %s", [2]int{700, 1000}, [2]int{9200, 13000}},
	{"killed", "etcd is killed and started again", "stopped", "silent", "unhealthy", "kill etcd on %s", [2]int{80, 300}, [2]int{100, 900}},
	{"disk-hangs", "the disk of a member hangs", "mute", "not-serving", "unhealthy", "hang the disk of %s", [2]int{420, 900}, [2]int{8000, 11000}},
	{"client-cut", "the applications lose one member that is healthy", "quorum", "serving", "unhealthy", "cut both applications from %s", [2]int{800, 1100}, [2]int{9000, 20000}},
}

// sampleRun makes up a run of n scenarios, always the same for one n.
func sampleRun(n int) report.Run {
	r := report.Run{
		Command: "go run ./e2e/partition run all --seed 4711 --report report", Seed: 4711,
		Began: sampleBegan, Took: time.Duration(n) * 19 * time.Second, Machine: "2 cores, 24 GB, Linux 6.1.0",
		Versions: []report.Version{{Name: "etcd", Version: "3.7.3"}, {Name: "quorumwise", Version: "v0.3.0"}, {Name: "official client", Version: "v3.7.3"}, {Name: "gRPC", Version: "v1.83.2"}, {Name: "Go", Version: "go1.26.8"}},
	}
	rng := rand.New(rand.NewPCG(4711, 1))
	for i := range n {
		f := sampleFaults[i%len(sampleFaults)]
		sc := sampleScenario(rng, f, i)
		sc.Began = r.Began.Add(time.Duration(i) * 19 * time.Second)
		r.Scenarios = append(r.Scenarios, sc)
	}
	if n > 11 {
		spoil(r.Scenarios)
		r.Scenarios = append(r.Scenarios, sampleSoak(rng, time.Duration(n)*3*time.Second))
	}
	return r
}

// spoil makes some scenarios end in every other way.
func spoil(scs []report.Scenario) {
	bad := &scs[8]
	bad.Status = report.Failed
	bad.Violations = []string{"the last stream left m2 2.31 s after the fault; the budget is 800 ms", "watch \"events/3\" saw revision 4711 twice"}
	bad.Apps[0].Figures.EventsTwice = 1
	bad.Apps[0].Figures.FalseMoves = 2
	bad.Files = []report.File{{Name: "log of m2", Path: "files/" + bad.Name + "/m2.log"}, {Name: "log of ours", Path: "files/" + bad.Name + "/ours.log"}}
	scs[4].Status, scs[4].Reason = report.Void, "the control suffered nothing: its longest silence was 0.21 s"
	scs[4].Apps[1].Figures.Stuck = ""
	scs[5].Status, scs[5].Reason = report.Skipped, "no loop device can be had: open /dev/loop-control: permission denied"
	scs[5].Apps, scs[5].Lanes, scs[5].Marks = nil, nil, nil
	scs[10].Status, scs[10].Reason = report.Broken, "no leader within 30s\nlast words of m1:\n\x1b[31mpanic\x00: <script>alert(1)</script>\xff"
	scs[10].Apps, scs[10].Lanes = nil, nil
}

func sampleScenario(rng *rand.Rand, f sampleFault, i int) report.Scenario {
	members := 3 + 2*(i/2%2)
	role := []string{"follower", "leader"}[i/3%2]
	shim := []string{"sidecar", "in process", "none"}[i/5%3]
	target := 1 // of followers; the leader is m1 before the fault
	if role == "leader" {
		target = 0
	}
	at, mended, end := ms(3000), ms(12000), ms(16000)
	sc := report.Scenario{
		Name: fmt.Sprintf("%s-%s-of-%d-%s-%d", f.name, role, members, shim, i), Suite: []string{"matrix", "double", "field"}[i/40%3],
		Does: f.does, Fault: f.name, Members: members, Shim: shim, Target: role, TargetMember: fmt.Sprintf("m%d", target+1),
		Version: "3.7.3", Status: report.Passed, Took: end + ms(2100), End: end,
		Marks: []report.Mark{
			{At: at, Kind: report.FaultMark, Text: fmt.Sprintf(f.text, fmt.Sprintf("m%d", target+1))},
			{At: mended, Kind: report.MendedMark, Text: "heal"},
		},
		Lateness: report.Lateness{Typical: ms(1), Worst: ms(14)}, Budget: report.Budget{Calls: ms(400), Streams: ms(1000)},
	}
	sc.Command = "go run ./e2e/partition run " + sc.Name + " --seed 4711"
	if i%4 == 0 {
		sc.Field = []string{"F7", "F8"}
		sc.Notes = []string{"a check of leader != 0 alone passed on the member all the time"}
	}
	left := at + ms(300+rng.IntN(150))
	moved := at + ms(f.ours[0]+rng.IntN(f.ours[1]-f.ours[0]))
	for m := range members {
		sc.Lanes = append(sc.Lanes, sampleLane(f, m, target, role, shim, at, mended, end))
	}
	sc.Apps = []report.App{
		sampleApp(rng, "ours", false, members, target, at, left, moved, mended, end, f),
		sampleApp(rng, "control", true, members, target, at, end, end, mended, end, f),
	}
	for _, class := range []string{"lease", "watch", "watch", "watch"} {
		sc.Apps[0].Moves = append(sc.Apps[0].Moves, report.Move{At: moved - ms(rng.IntN(90)), Member: sc.TargetMember, Class: class, Reason: "no quorum for 306 ms, m3 is healthy"})
	}
	return sc
}

func sampleLane(f sampleFault, m, target int, role, shim string, at, mended, end time.Duration) report.Lane {
	l := report.Lane{Member: fmt.Sprintf("m%d", m+1), Address: fmt.Sprintf("10.89.1.%d:2379", m+11)}
	calm := "quorum"
	if m == 0 {
		calm = "leader"
	}
	says := "serving"
	if shim == "none" {
		says = "none"
	}
	switch {
	case m == target:
		l.Truth = []report.Span{{To: at + ms(120), State: calm}, {From: at + ms(120), To: at + ms(1500), State: f.truth}, {From: at + ms(1500), To: mended + ms(500), State: f.truth, Detail: "no leader, term 3"}, {From: mended + ms(500), To: end, State: "quorum"}}
		l.Shim = []report.Span{{To: at + ms(280), State: says}, {From: at + ms(280), To: mended + ms(900), State: f.shim, Detail: "no quorum: no linearizable read begun in the last 250ms has completed"}, {From: mended + ms(900), To: end, State: says}}
		if shim == "none" {
			l.Shim = []report.Span{{To: end, State: says}}
		}
		return l
	case role == "leader" && f.truth != "quorum":
		after := "quorum"
		if m == 1 {
			after = "leader"
		}
		l.Truth = []report.Span{{To: at + ms(1200), State: calm}, {From: at + ms(1200), To: at + ms(1800), State: "no-leader"}, {From: at + ms(1800), To: end, State: after}}
		l.Shim = []report.Span{{To: at + ms(1300), State: says}, {From: at + ms(1300), To: at + ms(2000), State: "not-serving", Detail: "no leader"}, {From: at + ms(2000), To: end, State: says}}
		if shim == "none" {
			l.Shim = []report.Span{{To: end, State: says}}
		}
		return l
	}
	l.Truth = []report.Span{{To: end, State: calm}}
	l.Shim = []report.Span{{To: end, State: says}}
	return l
}

// sampleApp makes up what an application had: until left its calls go to every member,
// until moved its streams stay.
func sampleApp(rng *rand.Rand, name string, official bool, members, target int, at, left, moved, mended, end time.Duration, f sampleFault) report.App {
	a := report.App{Name: name, Official: official}
	silence := f.ours
	if official {
		silence = f.control
	}
	for m := range members {
		u := report.Use{Member: fmt.Sprintf("m%d", m+1)}
		for t := time.Duration(0); t < end; t += report.Slice {
			n := 14/members + rng.IntN(4)
			switch {
			case official && t > at && t < mended:
				n = rng.IntN(2)
			case m == target && t > left && t < mended+ms(900):
				n = 0
			}
			if n > 0 {
				u.Calls = append(u.Calls, report.Point{At: t, N: n})
			}
		}
		n := 2
		if m == target {
			n = 4
		}
		u.Streams = []report.Point{{At: ms(120), N: n}}
		if !official {
			u.Grades = []report.Span{{From: ms(90), To: end, State: "healthy"}}
			if m == target {
				u.Grades = []report.Span{{From: ms(90), To: left, State: "healthy"}, {From: left, To: moved, State: "suspect", Detail: "the shim says: no quorum"}, {From: moved, To: mended + ms(950), State: f.grade, Detail: "no quorum since 306ms"}, {From: mended + ms(950), To: end, State: "healthy"}}
				u.Streams = append(u.Streams, report.Point{At: moved, N: 0}, report.Point{At: mended + ms(2000), N: 1})
			}
			if m == members-1 {
				u.Streams = append(u.Streams, report.Point{At: moved + ms(20), N: 6}, report.Point{At: mended + ms(2000), N: 5})
			}
		}
		a.Members = append(a.Members, u)
	}
	a.Figures = sampleFigures(rng, silence, official, moved-at)
	return a
}

func sampleFigures(rng *rand.Rand, silence [2]int, official bool, moved time.Duration) report.Figures {
	f := report.Figures{
		Silence: ms(silence[0] + rng.IntN(silence[1]-silence[0])), Lag: ms(silence[0] + rng.IntN(100)),
		Calls: map[string]report.Quantiles{
			"get": {N: 2400, P50: ms(2), P90: ms(4), P99: ms(11), Max: ms(200 + rng.IntN(300))},
			"put": {N: 1210, P50: ms(4), P90: ms(7), P99: ms(19), Max: ms(400 + rng.IntN(400))},
			"txn": {N: 604, P50: ms(5), P90: ms(9), P99: ms(30), Max: ms(410 + rng.IntN(400))},
		},
		Failed: map[string]int{"put": 1}, Unknown: 1, Leases: 4,
		LastCall: ms(310 + rng.IntN(60)), LastRead: ms(330), LastStream: moved, LastMutation: moved - ms(10),
	}
	if official {
		f.Calls["get"] = report.Quantiles{N: 41, P50: ms(3), P90: ms(5000), P99: ms(5001), Max: report.Never}
		f.Failed = map[string]int{"get": 11, "put": 4}
		f.Avoidable, f.LeasesLost, f.Closed = 15, 2, 0
		f.LastCall, f.LastRead, f.LastStream, f.LastMutation = ms(9000), report.Never, report.Never, ms(5010)
		f.Stuck = "a watch was silent for 12.9 s; 2 leases were lost"
	}
	return f
}

// sampleSoak makes up faults and elections, one after the other.
func sampleSoak(rng *rand.Rand, end time.Duration) report.Scenario {
	const members = 5
	sc := report.Scenario{
		Name: "soak", Suite: "soak", Does: "random faults from a seed, one after the other", Members: members, Shim: "sidecar", Version: "3.7.3",
		Status: report.Passed, Began: sampleBegan, Took: end + ms(9000), End: end, Lateness: report.Lateness{Typical: ms(1), Worst: ms(90)},
	}
	apps := []report.App{{Name: "ours"}, {Name: "control", Official: true}}
	for m := range members {
		l := report.Lane{Member: fmt.Sprintf("m%d", m+1), Address: fmt.Sprintf("10.89.1.%d:2379", m+11)}
		for i := range apps {
			apps[i].Members = append(apps[i].Members, report.Use{Member: l.Member, Streams: []report.Point{{N: 3}}})
		}
		sc.Lanes = append(sc.Lanes, l)
	}
	lead, since := 0, make([]time.Duration, members)
	calm := func(m int) string {
		if m == lead {
			return "leader"
		}
		return "quorum"
	}
	for at := ms(5000); at < end-ms(20000); at += ms(9000 + rng.IntN(9000)) {
		f, m := sampleFaults[rng.IntN(len(sampleFaults)-1)], rng.IntN(members)
		lasts := ms(2000 + rng.IntN(6000))
		sc.Marks = append(sc.Marks, report.Mark{At: at, Kind: report.FaultMark, Text: fmt.Sprintf(f.text, sc.Lanes[m].Member)}, report.Mark{At: at + lasts, Kind: report.MendedMark, Text: "heal"})
		l, u := &sc.Lanes[m], &apps[0].Members[m]
		l.Truth = append(l.Truth, report.Span{From: since[m], To: at, State: calm(m)}, report.Span{From: at, To: at + lasts, State: f.truth})
		l.Shim = append(l.Shim, report.Span{From: since[m], To: at + ms(250), State: "serving"}, report.Span{From: at + ms(250), To: at + lasts, State: f.shim})
		u.Grades = append(u.Grades, report.Span{From: since[m], To: at + ms(300), State: "healthy"}, report.Span{From: at + ms(300), To: at + ms(600), State: "suspect"}, report.Span{From: at + ms(600), To: at + lasts, State: "unhealthy"})
		u.Streams = append(u.Streams, report.Point{At: at + ms(600), N: 0}, report.Point{At: at + lasts + ms(900), N: 3})
		apps[0].Moves = append(apps[0].Moves, report.Move{At: at + ms(600), Member: l.Member, Class: "watch", Reason: "no quorum"})
		since[m] = at + lasts
		if m == lead {
			lead = (lead + 1) % members
			n := &sc.Lanes[lead]
			n.Truth = append(n.Truth, report.Span{From: since[lead], To: at + ms(1200), State: "quorum"}, report.Span{From: at + ms(1200), To: at + ms(1700), State: "no-leader"})
			since[lead] = at + ms(1700)
		}
	}
	for m := range members {
		sc.Lanes[m].Truth = append(sc.Lanes[m].Truth, report.Span{From: since[m], To: end, State: calm(m)})
		sc.Lanes[m].Shim = append(sc.Lanes[m].Shim, report.Span{From: since[m], To: end, State: "serving"})
		for at := time.Duration(0); at < end; at += report.Slice {
			for i := range apps {
				apps[i].Members[m].Calls = append(apps[i].Members[m].Calls, report.Point{At: at, N: 1 + rng.IntN(4)})
			}
		}
	}
	for i := range apps {
		apps[i].Figures = sampleFigures(rng, [2]int{300 + 8000*i, 900 + 8000*i}, i == 1, ms(700))
	}
	sc.Apps = apps
	return sc
}
