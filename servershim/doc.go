// Package servershim runs beside one etcd member and says, over the health
// service of package healthsvc, what the member cannot say of itself: whether it
// has a quorum.
//
//	src := membership.NewRemote(conn)              // conn: to the member beside it, only
//	srv := healthsvc.NewServer(healthsvc.ServerOptions{EmptyName: true, Validity: servershim.Validity(0)})
//	shim, err := servershim.New(src, srv, servershim.Config{})
//	...
//	err = shim.Run(ctx)                            // until ctx ends
//
// Package servershim/sidecar is this as a server of its own, with TLS;
// servershim/inproc puts it into a program that embeds an etcd server.
//
// # What it does
//
// It gathers (proofs of quorum, local reads, observations), decides, and
// publishes, at every wake of one loop.
//
// A proof is a completed linearizable read. It counts from when it began. One is
// started every Interval whether or not the last has come back, each with a
// deadline of its own. Quorum is held while the newest completed one began within
// the window, which follows the round trip (smoothed mean, four deviations, two
// Intervals) between WindowFloor and ElectionTimeout. Nothing else is a proof:
// leader, term and indexes are told by the member alone, stay green on a member
// whose disk hangs, and are used for nothing but the reason.
//
// The member is serving when quorum is held, it is a voter, local reads complete
// and nobody asked to drain. Bad news counts at once, apart from one local read
// that fails: it is repeated after an Interval, and counts when it fails again.
// Good news takes GoodRounds proofs in a row, each begun after the one before had
// completed, and an applied index that has reached what was committed at the
// first of them. A member that is lost again within HoldDownMax of coming back
// has to stay good for the ElectionTimeout as well, then twice that, and so on up
// to HoldDownMax; each HoldDownMax without a loss halves it; a loss in an
// election, seen by a higher term, does not count.
//
// Alarms make etcd.write NOT_SERVING and nothing else: every member of the
// cluster refuses writes then, so that moving clients would not help.
//
// The shim suspects itself: time that its loop slept through does not age a
// proof, up to ElectionTimeout for each proof; a longer pause makes all that was
// known void, with reason stale, until the next proof.
//
// # Concurrency
//
// New, Report and Drain may be called from anywhere, Run once. Run starts
// goroutines for calls to the source only, at most 32 proofs, one read and one
// observation at a time, and waits for them before it returns.
//
// # Limits
//
// On a leader that loses only large packets to its peers proofs go on to
// complete while writes do not. That does not show here; clients see it in their
// own calls.
package servershim
