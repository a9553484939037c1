// Package servershim runs beside one etcd member and says, over the health
// service of package healthsvc, what the member cannot say of itself: whether it
// has a quorum.
//
//	src := membership.NewRemote(conn)              // conn: to the member beside it, only
//	srv := healthsvc.NewServer(healthsvc.ServerOptions{EmptyName: true, Validity: servershim.Validity(0)})
//	shim, err := servershim.New(src, srv, servershim.Config{}) // ElectionTimeout 1 s; for others see Validity
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
// first of them. A member that was lost has to stay good for the ElectionTimeout as
// well before it serves: with the defaults it is back 1 to 1.2 s after the first proof
// completes. A member that is lost again within HoldDownMax of coming back has to
// stay good for twice as long each time, 2 s, 4 s, and so on up to HoldDownMax; each
// HoldDownMax without a loss halves that, down to the ElectionTimeout. The time counts
// anew whenever it is bad in between. A loss in an election, seen by a higher term,
// does not count, and neither does one for want of a vote: three proofs end those,
// whatever it was lost for before, except of the leader that was replaced, and where
// nobody tells the shim who leads.
//
// While a member that was lost is out, its window is no wider than when it was lost,
// or than twice the quickest round trip of the last 2 to 4 ElectionTimeouts and two
// Intervals if that is more. A disk that stands still for 750 ms of each second lets
// proofs through in between: the stalls are no distance, and the member stays out until
// it has been without one for as long as it must. A member that is farther away for
// good is out for about 6 s while that becomes clear, for none after an election.
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
// A shim sees one member. When the leader's disk stalls again and again the proofs of
// all members stall with it, and no member serves until it is over: whoever balances
// on this service goes on with all members then, as the clients of package client do.
//
// On a leader that loses only large packets to its peers proofs go on to
// complete while writes do not. That does not show here; clients see it in their
// own calls.
package servershim
