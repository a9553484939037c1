// Package command is the command quorumshim as a function, for programs that carry it along under
// a name of their own, such as test suites that run it on many hosts. What the command does is
// documented at the command. Run may be called once in a process: it takes the process's SIGINT and
// SIGTERM, its standard output and its standard error.
package command
