package history

import "time"

// Kind is what an operation does.
type Kind string

// The kinds. Each names the fields of Op that it uses.
const (
	Get    Kind = "get"    // Keys (one or more, in one transaction if more); Found
	Put    Kind = "put"    // Keys, Values (one or more, in one transaction if more)
	Delete Kind = "delete" // Keys
	Swap   Kind = "swap"   // if Keys[0] holds Expect ("" absent) then put Keys/Values, else get Keys: Swapped, Found
)

// Outcome is what the caller knows of an operation.
type Outcome string

// The outcomes.
const (
	Done    Outcome = "done"    // acknowledged
	Refused Outcome = "refused" // certainly not applied
	Unknown Outcome = "unknown" // it may have been applied, or may yet be
)

// Op is one operation on a group of keys as its caller saw it. Operations of one
// group never touch keys of another. Values are unique: no two operations of a run
// write the same one.
type Op struct {
	Caller   int           // callers wait for one operation before they begin the next
	Group    string        // the keys that belong together
	ID       string        // unique; every value that the operation writes begins with it
	Kind     Kind          //
	Keys     []string      //
	Values   []string      // as many as Keys, where it writes
	Expect   string        //
	Call     time.Duration // from the start of the run
	Return   time.Duration // likewise; of an unknown one: when its caller gave up
	Outcome  Outcome       //
	Error    string        // unless done
	Swapped  bool          // done
	Found    []string      // done: the values read, "" for an absent key
	Revision int64         // done: of the store, as the answer's header says
}

// Change is one key's change in the store's own history.
type Change struct {
	Revision int64
	Deleted  bool
	Key      string
	Value    string
	Create   int64 // revision that created the key
	Version  int64
	Previous *string // with PrevKV: the value before; nil: none was delivered
}

// Truth is the store's own history, all changes in order of revision and, within one
// transaction, in the order in which etcd made them.
type Truth struct {
	From    int64 // the revision before the first
	Upto    int64 // the last revision that can be in it
	Changes []Change
	// Compacted is the highest revision that was compacted while watches ran, 0 if none
	// was: the server has no previous value to deliver for changes up to the next one.
	Compacted int64
	// Moments say by when some revisions were there, in order. None: nobody noted it.
	Moments []Moment
	// Pauses are when the machine stood still, by their begin. They may overlap.
	Pauses []Pause
	// Still is the longest time in which nothing was written at all, for whatever reason:
	// pauses may be among them.
	Still time.Duration
}

// Pause is a time in which nobody could do anything.
type Pause struct{ From, To time.Duration } // from the start of the run

// Moment is when somebody who is not part of what is judged saw a revision.
type Moment struct {
	Revision int64
	At       time.Duration // from the start of the run
}

// Stream is what one watch delivered.
type Stream struct {
	Name      string
	Key       string // first key
	End       string // of the range, exclusive; "" for the one key
	From      int64  // revision that it was asked to start with
	Puts      bool   // puts are delivered
	Deletes   bool   // deletes are delivered
	PrevKV    bool
	Fragment  bool
	Progress  bool // progress notices were asked for
	Responses []Response
	Closed    string // why its channel closed before the load was stopped; "": it did not
	Upto      int64  // revision that it was given the time to reach
}

// Response is one answer of a watch.
type Response struct {
	At       time.Duration
	Revision int64    // the header's
	Changes  []Change // none: a progress notice
}

// Section is one stay in the critical section of a mutex.
type Section struct {
	Mutex   string
	Holder  string // unique to the session
	Key     string // the holder's key below Mutex; "" when Lock failed
	Fence   int64  // create revision of that key: the fencing token
	Asked   time.Duration
	Entered time.Duration // 0: it never did
	Seen    int64         // the store's revision when it entered, of Mutex.Header; 0: not noted
	Left    time.Duration // when Unlock was called; of one that never entered: when it gave up, 0 if that was not noted
	// Writes are the values that it put while inside, each guarded by a comparison of
	// its key's create revision (fenced), and whether the caller saw them acknowledged.
	Writes   []Write
	Unlocked Outcome // of Unlock
	Error    string
	Lost     bool // its session ended while it was inside
}

// Write is one guarded write.
type Write struct {
	Key, Value string
	Outcome    Outcome
	Revision   int64
}

// Reign is one leadership of the election recipe.
type Reign struct {
	Election string
	Leader   string // candidate
	Key      string
	Fence    int64 // create revision of the key
	Asked    time.Duration
	Elected  time.Duration // 0: never
	Resigned time.Duration // when Resign was called, 0: it was not; of one never elected: when it gave up
	Lost     bool          // its session ended while it led
	LostAt   time.Duration // when it learnt of that; 0: not noted
	Error    string
}

// Count is one caller's increments of one counter: read, compare, write.
type Count struct {
	Counter                string
	Caller                 string
	Acked, Refused, Unsure []string // the ids of its increments; each is also written, with the new count, as "id:count"
}
