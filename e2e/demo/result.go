package main

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/quorumwise/quorumwise/e2e/cluster"
	"github.com/quorumwise/quorumwise/e2e/scenario"
	"github.com/quorumwise/quorumwise/e2e/workload"
)

// errVerdict says that the demonstration did not show what it should. The verdict
// that was printed says why.
var errVerdict = errors.New("the demonstration did not show what it should")

// busy is a lateness of the machine that explains a missed budget.
const busy = 100 * time.Millisecond

// aside is what the figures of an outcome leave out.
type aside struct{ calls, slow, failed int }

// result is the end of the demonstration: the table and the verdict.
func result(sc scenario.Scenario, out scenario.Outcome, asides [2]aside, width int) []line {
	lines := []line{nil}
	lines = append(lines, compared(figures(sc, out, asides), width)...)
	lines = append(lines, nil)
	return append(lines, verdict(sc, out)...)
}

// compared is the figures as a table or, where that does not fit, one below the other.
func compared(rows [][]line, width int) []line {
	cols := []column{{title: "what"}, {title: "official client", right: true}, {title: oursName, right: true}}
	lines := table(cols, rows, 0)
	if width <= 0 || lines[0].width() <= width {
		return lines
	}
	lines = nil
	for _, r := range rows {
		lines = append(lines, r[0], slices.Concat(line{{"  " + officialName + " ", plain}}, r[1], line{{", " + oursName + " ", plain}}, r[2]))
	}
	return lines
}

// figures has a row for each: what, the official client's, ours.
func figures(sc scenario.Scenario, out scenario.Outcome, asides [2]aside) [][]line {
	ours, official := out.Ours, out.Control
	rows := [][]line{
		durations("longest silence of a watch", official.Silence, ours.Silence),
		durations("longest Get", official.GetMax, ours.GetMax),
		counts(blockedMeans, asides[1].slow, asides[0].slow),
		counts("Gets that failed", official.GetsFailed, ours.GetsFailed),
		counts("Puts of unknown outcome", official.PutsUnknown, ours.PutsUnknown),
		counts("Puts that failed otherwise", official.PutsFailed, ours.PutsFailed),
		cells("leases", leaseFigure(official), leaseFigure(ours)),
		cells("calls that returned", word{text: fmt.Sprint(asides[1].calls)}, word{text: fmt.Sprint(asides[0].calls)}),
	}
	if sc.Target != scenario.Nobody && sc.Control == scenario.Stuck {
		rows = append(rows, cells("last stream moved after", gone(official.LastStream), gone(ours.LastStream)))
	}
	return rows
}

func cells(what string, official, ours word) []line {
	return []line{sentence(plain, "%s", what), {official}, {ours}}
}

func durations(what string, official, ours time.Duration) []line {
	return cells(what,
		word{seconds(official), mark(official > ours && official > loud)},
		word{seconds(ours), mark(ours > official && ours > loud)})
}

func counts(what string, official, ours int) []line {
	return cells(what, word{fmt.Sprint(official), mark(official > 0)}, word{fmt.Sprint(ours), mark(ours > 0)})
}

func leaseFigure(f workload.Figures) word {
	if f.LeasesLost == 0 {
		return word{fmt.Sprintf("all %d kept", f.Leases), good}
	}
	return word{fmt.Sprintf("LOST %d of %d", f.LeasesLost, f.Leases), bad}
}

func gone(d time.Duration) word {
	switch d {
	case workload.Never:
		return word{"never", bad}
	case 0:
		return word{"none was there", plain}
	default:
		return word{fmt.Sprintf("%.2f s", d.Seconds()), good}
	}
}

func mark(isBad bool) tone {
	if isBad {
		return bad
	}
	return good
}

// verdict says in plain words what has been shown.
func verdict(sc scenario.Scenario, out scenario.Outcome) []line {
	var lines []line
	switch {
	case len(out.Violations) > 0:
		lines = append(lines, sentence(bad, "FAILED: quorumwise did not keep its promises:"))
		for _, v := range out.Violations {
			lines = append(lines, sentence(bad, "  - %s", v))
		}
	case out.Void != "":
		lines = append(lines, sentence(warn, "NOTHING SHOWN: %s", out.Void))
	default:
		return []line{kept(sc, out)}
	}
	if late := out.Lateness.Worst; late > busy {
		lines = append(lines, sentence(warn, "The machine was too busy to judge by: work of this process began up to %s late. Try again when it is quiet.", seconds(late)))
	}
	return lines
}

// kept is the verdict when all went as it should.
func kept(sc scenario.Scenario, out scenario.Outcome) line {
	const lost = "no read failed, no lease was lost, no event was missed"
	switch sc.Control {
	case scenario.Stuck:
		moved := ""
		if d := out.Ours.LastStream; d > 0 && d != workload.Never {
			moved = fmt.Sprintf(" moved on within %.2f s", d.Seconds())
		}
		return line{
			{"PASSED: quorumwise" + moved + ": " + lost + ".", good},
			{" The official client got stuck: " + out.ControlStuck + ".", bad},
		}
	case scenario.Unharmed:
		return sentence(good, "PASSED: no member was bad and quorumwise moved no stream: %s.", lost)
	default:
		return sentence(good, "PASSED: with quorumwise %s.", lost)
	}
}

// shimKind says in words what stands beside the members.
func shimKind(s cluster.Shim) string {
	switch s {
	case cluster.ShimNone:
		return "no shims"
	case cluster.ShimInProcess:
		return "a shim inside each"
	case cluster.ShimLying:
		return "a lying shim beside each"
	default:
		return "a shim beside each"
	}
}
