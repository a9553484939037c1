package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/quorumwise/quorumwise/e2e/cluster"
)

// clockTicks is USER_HZ, which is 100 on every Linux that Go runs on.
const clockTicks = 100

func shimCommand() *cobra.Command {
	var lasts time.Duration
	cmd := &cobra.Command{
		Use:   "shim",
		Short: "CPU and memory of a sidecar at rest (Linux)",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if lasts < time.Second {
				return fmt.Errorf("--for = %v: want at least 1s", lasts)
			}
			return shimAtRest(cmd.Context(), cmd.OutOrStdout(), lasts)
		},
	}
	cmd.Flags().DurationVar(&lasts, "for", 30*time.Second, "how long it is watched")
	return cmd
}

// shimAtRest runs the real binary beside a member of a cluster and reads what
// the kernel says of it.
func shimAtRest(ctx context.Context, w io.Writer, lasts time.Duration) (err error) {
	dir, err := os.MkdirTemp("", "quorumshim")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	binary := filepath.Join(dir, "quorumshim")
	build := exec.CommandContext(ctx, "go", "build", "-o", binary, "github.com/quorumwise/quorumwise/servershim/cmd/quorumshim")
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		return fmt.Errorf("building the shim: %w", err)
	}
	c, err := cluster.Start(ctx, cluster.Config{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	address := lis.Addr().String()
	lis.Close()
	shim := exec.CommandContext(ctx, binary, "serve", "--etcd-endpoint", "http://"+c.Members()[0].ClientAddr(), "--listen", address, "--drain-time", "1s")
	shim.Cancel = func() error { return shim.Process.Signal(os.Interrupt) }
	if err := shim.Start(); err != nil {
		return err
	}
	defer func() { shim.Process.Signal(os.Interrupt); shim.Wait() }()

	if err := wait(ctx, 5*time.Second); err != nil {
		return err
	}
	before, err := cpu(shim.Process.Pid)
	if err != nil {
		return err
	}
	if err := wait(ctx, lasts); err != nil {
		return err
	}
	after, err := cpu(shim.Process.Pid)
	if err != nil {
		return err
	}
	memory, err := resident(shim.Process.Pid)
	if err != nil {
		return err
	}
	size, err := os.Stat(binary)
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "at rest, over %v: %.2f %% of one core, %s resident; the binary has %d MB\n",
		lasts, 100*(after-before).Seconds()/lasts.Seconds(), memory, size.Size()>>20)
	return nil
}

func wait(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// cpu is the user and system time of a process (proc(5), fields 14 and 15).
func cpu(pid int) (time.Duration, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut(string(b), ") ") // the name may hold blanks
	fields := strings.Fields(rest)
	if len(fields) < 13 {
		return 0, fmt.Errorf("/proc/%d/stat has %d fields after the name", pid, len(fields))
	}
	ticks := 0
	for _, f := range fields[11:13] {
		n, err := strconv.Atoi(f)
		if err != nil {
			return 0, err
		}
		ticks += n
	}
	return time.Duration(ticks) * time.Second / clockTicks, nil
}

// resident is the memory that a process has in RAM now.
func resident(pid int) (string, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(b)) {
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			return strings.TrimSpace(rest), nil
		}
	}
	return "", fmt.Errorf("/proc/%d/status has no VmRSS", pid)
}
