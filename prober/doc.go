// Package prober tells, from a client's side, which members of an etcd cluster
// are worth talking to.
//
// A [Prober] is given endpoints and grades each of them. It gathers evidence
// (the reports of the shim beside a member, checks of the path to etcd's own
// port, linearizable reads), decides, and publishes the outcome as an immutable
// [Snapshot]. It never touches a user's calls; who owns them acts on the
// snapshots.
//
//	p, err := prober.New(prober.Config{OnChange: func(s *prober.Snapshot) { ... }})
//	p.SetEndpoints([]prober.Endpoint{{Address: "10.0.0.1:2379", Shim: "10.0.0.1:2378"}, ...})
//	defer p.Close()
//
// # How a grade comes about
//
// Gathering, judging one endpoint, and judging all of them are three parts. The
// first is a probe per target, which asks and listens. The second makes a
// condition of one endpoint's evidence: good, bad with a cause, or nothing known.
// The third compares: bad evidence makes an endpoint [Suspect] at once, and
// [Unhealthy] only when it lasted for Config.Hold while another endpoint was
// good, and the other's goodness rests on evidence younger than the cause. So what
// hits all members alike (an election, overload, the client's own network)
// condemns none of them. Where all are slow the other has to be clearly better: its newest proof of
// quorum is at least Config.Hold younger than the newest that a shim without quorum tells of;
// and without a shim it takes half as long at most. Where the leader has just changed, a
// member is waited for until the reads that were lost with the old one have been sent again:
// 800 ms from its newest proof, or from the begin of the one of ours that failed. (Without
// shims changes of leader are seen by the second, and some too late for that.)
//
// Where a shim is followed its word decides, together with a check that the path
// to etcd's own port answers. Where there is none, etcd is asked directly whether
// it knows a leader, four times a second, and once a second to prove quorum by a
// linearizable read. A shim that is gone, that speaks for another member, or that
// never existed is no evidence against its member.
//
// Before its word condemns, a shim is asked once more: one whose member proves its quorum
// again pushes nothing until it serves. A member that only settles is not condemned, and
// one that catches up with its log only when that alone has lasted for Config.Hold.
//
// A condemned endpoint returns at once when its shim says SERVING and the path
// answers. Without a shim it takes three linearizable reads in a row; a health service
// that says SERVING, or a connection that works, is not enough. Where all reads are turned
// away for want of resources, a minute of that while it knows a leader suffices. What was condemned
// by our own evidence again and again waits 1 s, 2 s, up to a minute, unless nothing
// else is left.
//
// # Defaults
//
// A path check every 500 ms with a deadline of 150 ms, or of what the measured round
// trip asks for; 300 ms from suspect to unhealthy. From a silent cut to Unhealthy
// that is 950 ms at most with a shim; without one, 2 s from a loss of quorum.
//
// # Concurrency
//
// All methods may be called by any goroutine. A Prober has one goroutine, which
// also calls OnChange; the probes have a few each. Probers of the same process
// with equal, non-nil Config.ShareKey and equal times share one probe per target.
// A Snapshot is never changed after it was published.
//
// # What may not be assumed
//
// That Healthy means the next call succeeds, or that Unhealthy is known to others:
// a grade is what this client could see. That every change shows: snapshots hold
// the newest state, and what was over before it was looked at is skipped.
//
// # Limits
//
// Times are for clusters with an election timeout of up to 1 s, and scale with
// Config.ElectionTimeout beyond that. ProofAge, RoundTrip and Evidence of a
// Verdict are as of its last change, or at most 20 s old.
package prober
