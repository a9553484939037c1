//go:build linux

// Package nethosts is a lab of hosts on one Linux machine: each host has a
// network namespace, an address at a switch, and programs that run on it. Faults
// act on the packets between hosts, on processes, and on what LimitCPU,
// LimitMemory and disks give them.
//
//	func main() {
//		nethosts.Register("server", serverMain)
//		if err := nethosts.Enter(); err != nil { // says what is missing, and how to get it
//			log.Fatal(err)
//		}
//		lab, err := nethosts.New(nethosts.Config{})
//		...
//		m1, err := lab.Host("m1")
//		server, err := m1.StartSelf("server", nethosts.Command{Args: []string{m1.Addr().String()}})
//		cut, err := lab.Drop(nethosts.Between(m1, m2)...)
//		...
//		err = cut.Lift()
//		err = lab.Close()
//	}
//
// # Nothing outside is touched, nothing is left
//
// [Enter] runs the whole program again inside new namespaces for processes,
// mounts and networks. What a lab makes has no name outside of them, so two runs
// at once do not meet. When the program ends, by an exit, a panic or SIGKILL, the
// kernel ends every process, and removes every link, rule and mount. Without
// root, a user namespace is made as well, where the machine allows it.
//
// Two things need help with that. A process that writes to a hung disk cannot be
// killed, and would keep everything else alive with it: a guard process, outside
// of the namespaces, thaws the disks of a harness that is gone. Control groups do
// have names outside: the lab removes them, after a crash the guard does, or else
// the next lab that is made. Only who kills both the program and its guard with
// SIGKILL while a disk hangs finds a loop device left: mount it elsewhere and
// thaw it there (fsfreeze -u).
//
// Inside there is no way to the network outside, except by [Outside]. The work
// directory is in memory, so what lives in it counts as memory of the program
// that wrote it; a program that is to feel a disk gets one by Host.Disk.
//
// # The network
//
// All hosts of a lab are at one switch, without loss, delay or limit, and with
// IPv4 only. The harness has an address there too ([Lab.Address]): it reaches all
// hosts, and no fault touches its packets, so that it can observe. Faults act in
// the switch. Neither side of a connection is told: no packet is refused, no
// connection is closed. Any number of faults act at once, also on the same flow:
// chances are independent, delays add up, the lowest rate counts. A change takes
// effect for all its flows at the same moment.
//
// A packet that is held (Delay, Rate) leaves the switch for the harness, waits
// there, and comes back to be forwarded; if its flow is cut meanwhile, it is
// lost. Delays are exact to about a millisecond while the harness is not starved
// of CPU. The hop holds at most 32 MiB a flow, and carries tens of megabytes a
// second. Where the kernel has no TUN devices or cannot redirect packets, Delay
// and Rate return an [UnavailableError], and the rest works.
//
// [Host.Capture] takes the segments that reach a port of a host: what a fault lost never
// comes, what it delayed comes late.
//
// In the switch, up to eight segments that a host sends in bulk are one packet.
// Congestion control is cubic, or reno where cubic is not allowed.
//
// # Concurrency
//
// All methods may be called by any goroutine at any time. Faults take effect in
// the order of the calls that return. A host that is removed, and a lab that is
// closed, ends its processes; what is called on them after that returns an
// error. Goroutines: two for the hop, one a capture, one a process, two for each of its outputs
// that are not files; all have ended when Close has returned, except one whose
// writer blocks.
package nethosts
