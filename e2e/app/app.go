//go:build linux

package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quorumwise/quorumwise/e2e/nethosts"
)

// Program is the name of the process among nethosts' programs.
const Program = "app"

// Register makes the program known; call it before nethosts.Enter.
func Register() { nethosts.Register(Program, Main) }

// SteppedPackage is a main package that runs applications and nothing else.
const SteppedPackage = "github.com/quorumwise/quorumwise/e2e/app/stepped"

// Stepped builds an application whose wall clock App.StepClock can step, for
// Config.Binary.
func Stepped(ctx context.Context, cacheDir string) (string, error) {
	return nethosts.SteppedBinary(ctx, SteppedPackage, cacheDir)
}

// App is a running application as the harness holds it.
type App struct {
	cfg     Config
	process *nethosts.Process
	record  string
	log     string
	started chan struct{} // closed when the load runs
	gone    chan struct{} // closed when the process's stdout ended

	sending sync.Mutex // owns stdin
	stdin   *os.File

	mu       sync.Mutex
	progress *Progress
	failed   string // why the start failed
	seq      int
	waiting  map[int]chan report // by command; buffered
}

// starts numbers the files of applications of one host.
var starts atomic.Int64

// Start runs an application on a host and returns when its load does: when watches
// and leases stand on as many members as wanted.
func Start(ctx context.Context, host *nethosts.Host, cfg Config) (*App, error) {
	cfg = cfg.withDefaults()
	if err := cfg.check(); err != nil {
		return nil, err
	}
	n := starts.Add(1)
	file := func(ext string) string {
		return filepath.Join(host.Dir(), fmt.Sprintf("app-%s-%d.%s", cfg.Name, n, ext))
	}
	a := &App{
		cfg: cfg, record: file("record.json.gz"), log: file("log"),
		started: make(chan struct{}), gone: make(chan struct{}), waiting: make(map[int]chan report),
	}
	if err := a.run(host); err != nil {
		return nil, fmt.Errorf("app %s: start: %w", cfg.Name, err)
	}
	if err := a.begin(ctx); err != nil {
		a.Kill()
		return nil, err
	}
	return a, nil
}

// run starts the process and the goroutine that reads what it says, which ends with
// the process.
func (a *App) run(host *nethosts.Host) error {
	log, err := os.Create(a.log)
	if err != nil {
		return err
	}
	defer log.Close()
	stdin, toProcess, err := os.Pipe()
	if err != nil {
		return err
	}
	defer stdin.Close()
	fromProcess, stdout, err := os.Pipe()
	if err != nil {
		return errors.Join(err, toProcess.Close())
	}
	defer stdout.Close()
	a.process, err = host.StartSelf(Program, nethosts.Command{Path: a.cfg.Binary, Stdin: stdin, Stdout: stdout, Stderr: log})
	if err != nil {
		return errors.Join(err, toProcess.Close(), fromProcess.Close())
	}
	a.stdin = toProcess
	go a.listen(fromProcess)
	return nil
}

// begin gives the process its configuration and waits until the load runs.
func (a *App) begin(ctx context.Context) error {
	err := a.send(ctx, order{Config: a.cfg, Record: a.record, Log: a.log, Within: within(ctx, time.Minute)})
	if err != nil {
		return err
	}
	select {
	case <-a.started:
		return nil
	case <-a.gone:
		return a.ended()
	case <-ctx.Done():
		return fmt.Errorf("app %s: its load did not start: %w (log: %s)", a.cfg.Name, context.Cause(ctx), a.log)
	}
}

// within is the time that ctx leaves, or otherwise where it has no deadline.
func within(ctx context.Context, otherwise time.Duration) time.Duration {
	if deadline, ok := ctx.Deadline(); ok {
		return time.Until(deadline)
	}
	return otherwise
}

// listen takes the process's lines until its end.
func (a *App) listen(stdout *os.File) {
	defer stdout.Close()
	defer close(a.gone)
	lines := json.NewDecoder(stdout)
	for {
		var r report
		if lines.Decode(&r) != nil {
			return
		}
		a.take(r)
	}
}

func (a *App) take(r report) {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case r.Started:
		close(a.started)
	case r.Progress != nil:
		a.progress = r.Progress
	case r.Done != 0:
		if done := a.waiting[r.Done]; done != nil {
			delete(a.waiting, r.Done)
			done <- r
		}
	default:
		a.failed = r.Error
	}
}

// send writes one line. A process that does not read costs the context at most.
func (a *App) send(ctx context.Context, line any) error {
	b, err := json.Marshal(line)
	if err != nil {
		return fmt.Errorf("app %s: %w", a.cfg.Name, err)
	}
	a.sending.Lock()
	defer a.sending.Unlock()
	given := make(chan struct{}) // up
	stop := context.AfterFunc(ctx, func() { defer close(given); a.stdin.SetWriteDeadline(time.Now()) })
	defer func() {
		if !stop() { // the deadline is this line's, not the next one's
			<-given
			a.stdin.SetWriteDeadline(time.Time{})
		}
	}()
	if _, err := a.stdin.Write(append(b, '\n')); err != nil {
		return errors.Join(fmt.Errorf("app %s: it takes no commands: %w", a.cfg.Name, err), context.Cause(ctx))
	}
	return nil
}

// do sends a command, waits until it is done and returns the answer.
func (a *App) do(ctx context.Context, c command) (report, error) {
	done := make(chan report, 1)
	a.mu.Lock()
	a.seq++
	c.Seq = a.seq
	a.waiting[c.Seq] = done
	a.mu.Unlock()
	if err := a.send(ctx, c); err != nil {
		return report{}, err
	}
	select {
	case r := <-done:
		if r.Error != "" {
			return r, fmt.Errorf("app %s: %s: %s", a.cfg.Name, c.Do, r.Error)
		}
		return r, nil
	case <-a.gone:
		return report{}, a.ended()
	case <-ctx.Done():
		return report{}, fmt.Errorf("app %s: %s: no answer: %w", a.cfg.Name, c.Do, context.Cause(ctx))
	}
}

// ErrEnded says of an application that its process ended by itself, without a word.
var ErrEnded = errors.New("its process ended")

// ended says how the process ended.
func (a *App) ended() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.failed != "" {
		return fmt.Errorf("app %s: %s (log: %s)", a.cfg.Name, a.failed, a.log)
	}
	return fmt.Errorf("app %s: %w (log: %s)", a.cfg.Name, ErrEnded, a.log)
}

// Name is the application's name.
func (a *App) Name() string { return a.cfg.Name }

// Official says whether it runs on the official client.
func (a *App) Official() bool { return a.cfg.Official }

// Process is the application's process, for faults.
func (a *App) Process() *nethosts.Process { return a.process }

// Log is the path of its log.
func (a *App) Log() string { return a.log }

// Progress is the newest news from the process, which come four times a second;
// false while there are none.
func (a *App) Progress() (Progress, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.progress == nil {
		return Progress{}, false
	}
	return *a.progress, true
}

// SetEndpoints gives the client other endpoints, with the shims beside them as in
// Config.ShimAddresses. The observer stays on those of its members that are among
// them, and takes all of them where none is.
func (a *App) SetEndpoints(ctx context.Context, endpoints []string, shims map[string]string) error {
	_, err := a.do(ctx, command{Do: setEndpoints, Endpoints: endpoints, ShimAddresses: shims})
	return err
}

// StepClock moves the wall clock of the process, which must run Config.Binary. It returns how
// far that clock is ahead now of what it would show without any step, as the process itself
// measured it: steps add up.
func (a *App) StepClock(ctx context.Context, d time.Duration) (ahead time.Duration, err error) {
	r, err := a.do(ctx, command{Do: stepClock, Step: d})
	return r.Ahead, err
}

// Freeze stops the process where it is.
func (a *App) Freeze() error { return a.process.Freeze() }

// Thaw lets it go on.
func (a *App) Thaw() error { return a.process.Thaw() }

// closing is what is kept of Stop's time for closing clients and writing the record.
const closing = 8 * time.Second

// Stop ends the load, gives watches the time that ctx leaves (but a few seconds) to
// deliver revision upTo, closes the clients and returns the record. The process
// ends. Where it does not answer in time it is killed, and the record is lost. A
// record that lacks what was switched on comes with a LackError.
func (a *App) Stop(ctx context.Context, upTo int64) (Record, error) {
	left := within(ctx, 30*time.Second)
	_, err := a.do(ctx, command{Do: stop, Upto: upTo, Within: max(left-closing, left/2)})
	if err == nil {
		err = a.process.Stop(ctx)
	} else {
		a.Kill()
	}
	if err != nil {
		return Record{}, err
	}
	a.hangUp()
	rec, err := readRecord(a.record)
	if err != nil {
		return Record{}, fmt.Errorf("app %s: %w", a.cfg.Name, err)
	}
	if lacks := a.cfg.lacks(rec); len(lacks) > 0 {
		return rec, &LackError{App: a.cfg.Name, Lacks: lacks, Log: a.log}
	}
	return rec, os.Remove(a.record)
}

// Kill ends the process as SIGKILL does. The record is lost.
func (a *App) Kill() error {
	err := a.process.Kill()
	a.hangUp()
	return err
}

func (a *App) hangUp() {
	a.sending.Lock()
	defer a.sending.Unlock()
	a.stdin.Close()
}
