//go:build linux

package nethosts

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// CommandError is a failed ip or nft.
type CommandError struct {
	Where   string // the host, or what else the command was for
	Command string
	Input   string // what it was told to do
	Output  string // what it said
	Err     error
}

func (e *CommandError) Error() string {
	return fmt.Sprintf("nethosts: %s: %s: %v: %s (told %q)", e.Where, e.Command, e.Err, strings.TrimSpace(e.Output), e.Input)
}

func (e *CommandError) Unwrap() error { return e.Err }

// ip runs the lines as one batch in the network of the calling thread. The file,
// if there is one, is /proc/self/fd/3 to it.
func ip(where string, file *os.File, lines ...string) error {
	return tool(where, file, strings.Join(lines, "\n")+"\n", "ip", "-force", "-batch", "-")
}

// nft applies a ruleset, all of it or nothing, in the network of the calling
// thread.
func nft(where, ruleset string) error {
	return tool(where, nil, ruleset, "nft", "-f", "-")
}

// sbin is where commands for root are, which PATH does not lead other users to.
var sbin = []string{"/usr/sbin", "/sbin"}

// findTool returns the path of a command.
func findTool(name string) (string, error) {
	path, err := exec.LookPath(name)
	for _, dir := range sbin {
		if err != nil {
			path, err = exec.LookPath(filepath.Join(dir, name))
		}
	}
	return path, err
}

// toolTime bounds every command: they take milliseconds, and a lab must be closed also
// where one hangs.
var toolTime = time.Minute

func tool(where string, file *os.File, input, name string, args ...string) error {
	path, err := findTool(name)
	if err != nil {
		return &CommandError{Where: where, Command: name, Err: err}
	}
	ctx, cancel := context.WithTimeout(context.Background(), toolTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.WaitDelay = time.Second
	cmd.Stdin = strings.NewReader(input)
	if file != nil {
		cmd.ExtraFiles = []*os.File{file}
	}
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			err = fmt.Errorf("it did not end within %v", toolTime)
		}
		return &CommandError{Where: where, Command: strings.Join(cmd.Args, " "), Input: input, Output: output.String(), Err: err}
	}
	return nil
}
