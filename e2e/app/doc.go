//go:build linux

// Package app is one application on a client host: a process of its own with an
// etcd client, quorumwise's or the official one, and the load of a user on it.
//
//	app.Register() // before nethosts.Enter
//	...
//	a, err := app.Start(ctx, host, app.Config{Name: "ours", Endpoints: eps, Spread: 3, Histories: true})
//	... // the load runs: cut, freeze, heal
//	rec, err := a.Stop(ctx, upTo)
//
// The load is that of package workload (Gets, Puts, watches, leases) and, as
// switched on, operations on groups of keys for a linearizability checker, watches
// of every kind, mutexes, elections, counters. What is seen is recorded as types of
// packages workload and history; nothing is judged here.
//
// # The process
//
// It reads its Config and then commands as lines of JSON on stdin, and answers on
// stdout; it ends when stdin closes. The record is some megabytes: it goes to a file
// in the host's directory. The log, and what the process says when it dies, is in a
// file there too.
//
// # Errors and times
//
// An error crosses from the process as an [Error], which keeps its text, its gRPC
// code, what errors.Is finds in it, and whether it leaves a mutation's outcome open
// ([OutcomeOf] decides that, in one place for everything here).
//
// Every time is the wall clock's at the start of the process plus what the
// monotonic clock has counted since: a wall clock that is stepped under the process
// does not shift its record. Durations count from Config.Zero.
//
// # Concurrency
//
// All methods of an App may be called from any goroutine. None waits for the
// process without a context: one that is frozen or killed costs the caller its
// deadline at most.
package app
