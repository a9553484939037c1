package scenario

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/quorumwise/quorumwise/e2e/workload"
)

// Report writes the figures of outcomes as a table, two lines for each: ours and
// the control. Durations are from the fault; "never" is at least until the heal.
func Report(w io.Writer, outs []Outcome) error {
	tab := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tab, "scenario\tshim\tclient\twatch silent\tbehind\tlast call\tlast read\tlast stream\tGets\tfailed\tlongest\tPuts acked\tunknown\tfailed\tleases lost\treopened (watch+lease)\telection\tmachine late\tresult")
	for _, o := range outs {
		row(tab, o, "quorumwise", o.Ours, o.result())
		row(tab, o, "official", o.Control, o.ControlStuck)
	}
	return tab.Flush()
}

func row(w io.Writer, o Outcome, name string, f workload.Figures, result string) {
	fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%d\t%d\t%s\t%d\t%d\t%d\t%d/%d\t%d+%d\t%s\t%s\t%s\n",
		o.Scenario, o.Shim, name, shown(f.Silence), shown(f.Lag),
		since(f.LastCall), since(f.LastRead), since(f.LastStream),
		f.Gets, f.GetsFailed, shown(f.GetMax), f.PutsAcked, f.PutsUnknown, f.PutsFailed,
		f.LeasesLost, f.Leases, f.WatchesReopened, f.LeasesReopened, since(o.Elected), shown(o.Lateness.Worst), result)
}

func since(d time.Duration) string {
	if d == 0 {
		return "-"
	}
	return shown(d)
}

func (o Outcome) result() string {
	switch {
	case o.Void != "":
		return "void: " + o.Void
	case len(o.Violations) > 0:
		return fmt.Sprintf("%d violations", len(o.Violations))
	default:
		return "ok"
	}
}
