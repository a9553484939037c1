package nethosts

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strings"
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

// findTool also looks where PATH does not lead users who are not root.
func findTool(name string) string {
	for _, path := range []string{name, "/usr/sbin/" + name, "/sbin/" + name} {
		if found, err := exec.LookPath(path); err == nil {
			return found
		}
	}
	return name
}

func tool(where string, file *os.File, input, name string, args ...string) error {
	cmd := exec.Command(findTool(name), args...)
	cmd.Stdin = strings.NewReader(input)
	if file != nil {
		cmd.ExtraFiles = []*os.File{file}
	}
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	if err := cmd.Run(); err != nil {
		return &CommandError{Where: where, Command: strings.Join(cmd.Args, " "), Input: input, Output: output.String(), Err: err}
	}
	return nil
}
