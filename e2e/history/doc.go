// Package history judges what applications saw of a store against the store's own
// history.
//
// Applications file records (Op, Stream, Section, Reign, Count); ReadTruth reads what
// the store really did, revision by revision, when the load has ended. Each checker
// takes records and truth and returns violations, a line each, at most ten: which
// operation or who, which value, which revision, and against what.
//
//	Linearizable    is there an order of Gets, Puts, Deletes and Swaps that explains every answer
//	CheckOnce       no mutation applied, or sent, twice
//	CheckStream     a watch delivers every change once, in order, whole
//	CheckLocks      mutual exclusion of a mutex, judged by fencing tokens
//	CheckElections  one leader at a time, and soon the next
//	CheckCounters   no increment lost or doubled
//
// All but ReadTruth are pure and may be called concurrently. Records come from other
// processes: nothing in them makes a checker panic, and what cannot be judged is told
// as a violation, lest a mistake of a recorder make a check blind. What a checker
// cannot know, it is silent about: each says what it takes for granted.
package history
