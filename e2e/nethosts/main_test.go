//go:build linux

package nethosts_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/quorumwise/quorumwise/e2e/leak"
	"github.com/quorumwise/quorumwise/e2e/nethosts"
)

func TestMain(m *testing.M) {
	nethosts.Register("echo", echoMain)
	if os.Getenv(trialEnv) == "missing" {
		missing := nethosts.Missing()
		fmt.Println(missing)
		fmt.Println(nethosts.Enter())
		os.Exit(0)
	}
	nethosts.EnterTests()
	if trial, ok := trials[os.Getenv(trialEnv)]; ok {
		os.Exit(trial())
	}
	leak.VerifyTestMain(m, leak.Harness)
}

// echoMain answers on the TCP address given, until it is ended.
func echoMain() int {
	l, err := net.Listen("tcp", os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	for {
		c, err := l.Accept()
		if err != nil {
			return 1
		}
		go func() { _, _ = io.Copy(c, c) }()
	}
}

// trialEnv names what this binary does when a test starts it as a whole harness.
const trialEnv = "QUORUMWISE_LAB_TRIAL"

var trials = map[string]func() int{
	"status": func() int { return 7 },
	"signal": awaitSignal,
	"orphan": leaveOrphans,
	"hold":   func() int { return tryLab(true) },
	"lab":    func() int { return tryLab(false) },
	"twice":  tryTwice,
	"outside": func() int {
		err := nethosts.Outside(func() error { return nil })
		fmt.Println(err)
		if _, ok := errors.AsType[*nethosts.UnavailableError](err); !ok {
			return 1
		}
		return 0
	},
}

func awaitSignal() int {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	fmt.Println("ready")
	fmt.Println("got", <-signals)
	select {
	case <-signals:
		return 1 // twice
	case <-time.After(200 * time.Millisecond):
		return 3
	}
}

// leaveOrphans ends with status 0 if process 1 buries what it is left, and leaves
// to os/exec what is its own.
func leaveOrphans() int {
	for range 20 {
		p, err := os.StartProcess("/bin/sh", []string{"sh", "-c", "(sleep 0.01 &) ; exit 5"}, &os.ProcAttr{})
		if err != nil {
			return 1
		}
		time.Sleep(5 * time.Millisecond)
		if state, err := p.Wait(); err != nil || state.ExitCode() != 5 {
			fmt.Println("own child:", state, err)
			return 1
		}
	}
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		processes := 0
		left, _ := os.ReadDir("/proc")
		for _, e := range left {
			if e.Name()[0] >= '1' && e.Name()[0] <= '9' {
				processes++
			}
		}
		switch {
		case processes == 2: // process 1 and this one
			return 0
		case time.Now().After(end):
			fmt.Println(processes, "processes, want 2: nobody has buried the others")
			return 1
		}
	}
}

// tryLab uses everything of a lab that could be left behind, and if it is to hold
// it, waits with it for its end.
func tryLab(hold bool) int {
	l, err := nethosts.New(nethosts.Config{})
	if err != nil {
		fmt.Println(err)
		return 1
	}
	if err := useLab(l, "m1", "c1"); err != nil {
		fmt.Println(err)
		return 1
	}
	fmt.Println("ready")
	if hold {
		time.Sleep(time.Minute)
	}
	if err := l.Close(); err != nil {
		fmt.Println(err)
		return 1
	}
	return 0
}

// tryTwice uses a lab, and when it is told so uses it again: it would show what another harness
// has done to it meanwhile.
func tryTwice() int {
	if err := useTwice(bufio.NewReader(os.Stdin)); err != nil {
		fmt.Println(err)
		return 1
	}
	return 0
}

func useTwice(told *bufio.Reader) error {
	l, err := nethosts.New(nethosts.Config{})
	if err != nil {
		return err
	}
	var had []string
	for i := range 2 {
		server, client := fmt.Sprint("m", i), fmt.Sprint("c", i)
		if err := useLab(l, server, client); err != nil {
			return err
		}
		has, err := useMachine(l, server+"-own")
		if err != nil {
			return err
		}
		if i == 0 {
			had = has
		} else if !slices.Equal(has, had) {
			return fmt.Errorf("the machine gives a host %q; before, it gave %q", has, had)
		}
		fmt.Println("ready")
		if _, err := told.ReadString('\n'); err != nil {
			return err
		}
	}
	return l.Close()
}

// useMachine takes for a host what labs share, where the machine has it.
func useMachine(l *nethosts.Lab, name string) (has []string, err error) {
	h, err := l.Host(name)
	if err != nil {
		return nil, err
	}
	for what, take := range map[string]func() error{
		"control groups": func() error { _, err := h.LimitCPU(0.5); return err },
		"a disk": func() error {
			d, err := h.Disk(32 << 20)
			if err != nil {
				return err
			}
			return os.WriteFile(d.Path()+"/file", []byte("x"), 0o600)
		},
	} {
		err := take()
		if _, ok := errors.AsType[*nethosts.UnavailableError](err); ok {
			continue
		}
		if err != nil {
			return nil, err
		}
		has = append(has, what)
	}
	slices.Sort(has)
	return has, nil
}

func useLab(l *nethosts.Lab, server, client string) error {
	m1, err := l.Host(server)
	if err != nil {
		return err
	}
	c1, err := l.Host(client)
	if err != nil {
		return err
	}
	address := m1.Addr().String() + ":1"
	p, err := m1.StartSelf("echo", nethosts.Command{Args: []string{address}})
	if err != nil {
		return err
	}
	if _, err := c1.Start(nethosts.Command{Path: "sh", Args: []string{"-c", "setsid sleep 1000 & sleep 1000"}}); err != nil {
		return err
	}
	if _, err := l.Delay(time.Millisecond, nethosts.Between(m1, c1)...); err != nil {
		return err
	}
	if _, err := l.Lose(0.01, nethosts.Between(m1, c1)...); err != nil {
		return err
	}
	if err := os.WriteFile(m1.Dir()+"/file", []byte("x"), 0o600); err != nil {
		return err
	}
	err = c1.Do(func() (err error) {
		for range 100 {
			var c net.Conn
			if c, err = net.DialTimeout("tcp", address, time.Second); err == nil {
				return c.Close()
			}
			time.Sleep(10 * time.Millisecond)
		}
		return err
	})
	if err != nil {
		return err
	}
	return p.Freeze()
}
