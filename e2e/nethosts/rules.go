//go:build linux

package nethosts

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// disturbance is what one fault does to packets.
type disturbance struct {
	flows []Flow
	lose  float64       // part of the packets
	above int           // lose only those of more bytes
	delay time.Duration // 0: none
	rate  int           // bytes a second, 0: no limit
}

// hops tells if the packets have to take the way through the harness.
func (d *disturbance) hops() bool { return d.delay > 0 || d.rate > 0 }

// chances is the number of lots from which a packet draws one.
const chances = 1 << 24

// rules is the whole ruleset of a switch. Packets that are to be held leave for
// the hop where they come out of their host, and come back from it. What is to
// be lost is lost where the switch forwards: packets that were held meet faults
// that began meanwhile, and the switch's own packets, the harness's, meet none.
//
// The tables stay and only their rules are replaced, in one transaction: that is
// ten times as fast as replacing the hooks.
func rules(number int, acting []*disturbance, unplugged map[*Host]bool) string {
	var b strings.Builder
	fmt.Fprintf(&b, "table bridge lab%d { chain forward { type filter hook forward priority 0; policy accept; }; }\n", number)
	fmt.Fprintf(&b, "flush table bridge lab%d\n", number)
	for _, d := range acting {
		if d.lose > 0 {
			fmt.Fprintf(&b, "add rule bridge lab%d forward ip saddr . ip daddr { %s } %s%sdrop\n", number, pairs(d.flows), larger(d.above), lots(d.lose))
		}
	}
	detours(&b, number, held(acting, unplugged))
	return b.String()
}

// noRules takes all of it away.
func noRules(number int) string {
	return fmt.Sprintf("delete table bridge lab%d\ndelete table netdev lab%[1]d\n", number)
}

// larger matches IP packets of more bytes.
func larger(than int) string {
	if than == 0 {
		return ""
	}
	return fmt.Sprintf("ip length > %d ", than)
}

// lots matches packets by chance.
func lots(part float64) string {
	if part == 1 {
		return ""
	}
	return fmt.Sprintf("numgen random mod %d < %d ", chances, int(part*chances))
}

// pairs lists each pair of addresses once.
func pairs(flows []Flow) string {
	set := map[string]bool{}
	for _, f := range flows {
		set[fmt.Sprintf("%s . %s", f.From.addr, f.To.addr)] = true
	}
	return strings.Join(slices.Sorted(maps.Keys(set)), ", ")
}

// held returns for each port of the switch the addresses to which its packets
// take the hop.
func held(acting []*disturbance, unplugged map[*Host]bool) map[string]map[string]bool {
	ports := map[string]map[string]bool{}
	for _, d := range acting {
		for _, f := range d.flows {
			if !d.hops() || unplugged[f.From] {
				continue
			}
			if ports[f.From.port] == nil {
				ports[f.From.port] = map[string]bool{}
			}
			ports[f.From.port][f.To.addr.String()] = true
		}
	}
	return ports
}

func detours(b *strings.Builder, number int, ports map[string]map[string]bool) {
	fmt.Fprintf(b, "table netdev lab%d { }\n", number)
	fmt.Fprintf(b, "flush table netdev lab%d\n", number)
	for _, port := range slices.Sorted(maps.Keys(ports)) {
		fmt.Fprintf(b, "table netdev lab%d { chain %s { type filter hook ingress device %q priority 0; policy accept; ip daddr { %s } fwd to %q; }; }\n",
			number, port, port, strings.Join(slices.Sorted(maps.Keys(ports[port])), ", "), hopName(number))
	}
}

func hopName(number int) string { return fmt.Sprintf("hop%d", number) }
