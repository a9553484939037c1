//go:build linux

// Package suites holds the faults that the project is about, played on hosts of their
// own with real etcd members ([realetcd] on [nethosts]) and judged.
//
// A [Scenario] is a value: what it does, step by step, to a cluster while two
// applications on client hosts of their own use it under the same load, one with
// quorumwise (ours), one with the official client (the control). [Run] plays it: lab,
// cluster, sampler of the truth, applications, a numbered reference written through
// members that no fault touches, steady time, steps, catch-up, checks. What comes out is a
// [report.Scenario].
//
// A scenario is written by naming its steps:
//
//	Scenario{
//		Name: "members-restarted-in-turn", Suite: "operations", Control: Harmless,
//		Does: "every member is stopped and started again, one after the other",
//		Steps: []Step{{Text: "restart every member", Mark: Noted, Wait: 3 * time.Second, Do: restartAll}},
//	}
//
// A fault of the table ([Faults]) is inflicted by [Stage.Inflict], which remembers how it is
// lifted, whom it hurts and how; [Stage.Lift] takes back everything that was inflicted. The
// judge needs to know what was done to a member to call a move false: steps that hurt a
// member by other means say so with [Stage.Hurt]. Steps that hurt clients do it to both client
// hosts alike.
//
// Everything that the judge decides from is an [Evidence]; a scenario with claims of its own
// adds a pure function of it (Scenario.Judge; Scenario.Timing for claims about time). Lists are
// registered in [All].
//
// Mutations are counted where they reach a server, by the values that they put, of 1 KiB at most: from
// the packets that come in at its host, or by itself where the shim is in its process. Counts with
// a gap, or without a value of a mutation that a server answered, pass nothing: the scenario is
// broken, which is no violation of ours. What gRPC itself sends again, because a server that
// stops had not processed it, comes twice and is excused as often as the client's trace tells that
// it went out again. What else the trace tells to have gone out twice is a violation, whether or not
// it came.
//
// The void rule: a scenario in which the control suffers nothing from the first fault on, but for
// what the machine's own standstill explains, has shown nothing and counts as failed, unless it is
// marked as a no-harm one: Unharmed (then ours may move nothing either, and what was done has to
// show: a shim that says nothing, another term, calls that wait; see Scenario.Shown) or Harmless
// (then somebody, whoever it is, has to notice something of the fault).
// Void is also a scenario that missed what it needs (a snapshot, a leader that acknowledges while it
// is stalled): ours broke no promise, and what it was to show was not there to be seen.
// Likewise one in which only time is in doubt, because the machine stood still just
// before, or was late again and again until then by as much. What is void by such bad luck, or did
// not start, is played again, three times at most; what ours did wrong is a violation the first
// time, and so is what was late at another moment.
//
// How long a user of ours may wait: as long as no member serves that is well, until a member that
// is bad, or alone is slow, must be left, and a second besides. Where all members are slow there is
// nowhere to go: ours must then be no worse than the control. In the end nothing may be left over:
// no stream stands twice when the load ends, and no call or stream is open when the client is closed.
//
// Scenarios may run at the same time in one process: nothing here is shared but the
// machine.
package suites
