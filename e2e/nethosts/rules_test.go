//go:build linux

package nethosts

import (
	"net/netip"
	"strings"
	"testing"
	"time"
)

func TestRulesetOfFaultsThatActTogether(t *testing.T) {
	a := &Host{name: "a", addr: netip.MustParseAddr("10.64.0.2"), port: "p0.1"}
	b := &Host{name: "b", addr: netip.MustParseAddr("10.64.0.3"), port: "p0.2"}
	c := &Host{name: "c", addr: netip.MustParseAddr("10.64.0.4"), port: "p0.3"}
	got := rules(0, []*disturbance{
		{flows: Between(a, b), lose: 1},
		{flows: []Flow{{a, c}, {a, c}}, lose: 0.25},
		{flows: []Flow{{a, c}}, delay: time.Second},
		{flows: []Flow{{a, b}, {c, a}}, rate: 5000},
		{flows: []Flow{{b, a}}, lose: 0},
		{flows: []Flow{{b, c}}, lose: 1, above: 600},
	}, map[*Host]bool{c: true})
	want := `table bridge lab0 { chain forward { type filter hook forward priority 0; policy accept; }; }
flush table bridge lab0
add rule bridge lab0 forward ip saddr . ip daddr { 10.64.0.2 . 10.64.0.3, 10.64.0.3 . 10.64.0.2 } drop
add rule bridge lab0 forward ip saddr . ip daddr { 10.64.0.2 . 10.64.0.4 } numgen random mod 16777216 < 4194304 drop
add rule bridge lab0 forward ip saddr . ip daddr { 10.64.0.3 . 10.64.0.4 } ip length > 600 drop
table netdev lab0 { }
flush table netdev lab0
table netdev lab0 { chain p0.1 { type filter hook ingress device "p0.1" priority 0; policy accept; ip daddr { 10.64.0.3, 10.64.0.4 } fwd to "hop0"; }; }
`
	if got != want {
		t.Errorf("got:\n%swant (c has no link any more):\n%s", got, want)
	}
	none := rules(3, nil, nil)
	if strings.Contains(none, "drop") || strings.Contains(none, "fwd") || !strings.Contains(none, "flush table bridge lab3") || !strings.Contains(none, "flush table netdev lab3") {
		t.Errorf("without faults the ruleset is\n%swant nothing but empty tables", none)
	}
}

func TestAddressesAreDifferentAndEnd(t *testing.T) {
	seen := map[netip.Addr]bool{}
	for lab := range mostLabs {
		for _, k := range []int{1, 2, 255, 256, 65534} {
			a, ok := address(lab, k)
			if !ok || seen[a] || !addressSpace.Contains(a) {
				t.Fatalf("address(%d, %d) = %v, %v: want one of its own in %v", lab, k, a, ok, addressSpace)
			}
			seen[a] = true
		}
	}
	if a, ok := address(0, 65535); ok {
		t.Errorf("address(0, 65535) = %v, want none: it is the broadcast address", a)
	}
}

func TestSubnetsAreGivenBack(t *testing.T) {
	var taken []int
	for {
		n, err := takeSubnet()
		if err != nil {
			if !strings.Contains(err.Error(), "close one") {
				t.Errorf("%v does not say the way out", err)
			}
			break
		}
		taken = append(taken, n)
	}
	if len(taken) != mostLabs {
		t.Errorf("%d labs at a time, want %d", len(taken), mostLabs)
	}
	for _, n := range taken {
		returnSubnet(n)
	}
	if n, err := takeSubnet(); err != nil || n != 0 {
		t.Errorf("takeSubnet() = %d, %v after all were given back, want the first", n, err)
	}
	returnSubnet(0)
}
