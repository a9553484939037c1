package command

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"text/tabwriter"
	"time"

	"github.com/quorumwise/quorumwise/membership"
)

// printTable writes one line an endpoint, with a star at the leader, and below the
// table what the questions failed of.
func printTable(w io.Writer, c clusterStatus) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "ENDPOINT\tMEMBER\tSTATUS\tREASON\tLEADER\tTERM\tPROOF AGE\tROUND TRIP\tVIA")
	for _, a := range c.answers {
		id := a.news.Identity
		member := hex(id.Member)
		if c.isLeader(a) {
			member += " *"
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n",
			a.endpoint, dash(member), a.status(), dash(c.why(a)), dash(hex(id.Leader)), dash(decimal(id.Term)),
			dash(duration(a.news.ProofAge, a.news.ShimRTT > 0)), dash(duration(a.news.ShimRTT, a.news.ShimRTT > 0)), dash(string(a.via)))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for _, a := range c.answers {
		if c.failed(a) {
			if _, err := fmt.Fprintf(w, "%s: %v\n", a.endpoint, a.news.Err); err != nil {
				return err
			}
		}
	}
	return nil
}

func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

func hex(id uint64) string {
	if id == 0 {
		return ""
	}
	return membership.ID(id).String()
}

func decimal(n uint64) string {
	if n == 0 {
		return ""
	}
	return strconv.FormatUint(n, 10)
}

func duration(d time.Duration, known bool) string {
	if !known {
		return ""
	}
	return d.String()
}

// statusJSON is the output of -w json. Fields are only ever added.
type statusJSON struct {
	Cluster   string         `json:"cluster,omitempty"` // hex; without it no cluster has most endpoints
	Leader    string         `json:"leader,omitempty"`  // hex
	Term      uint64         `json:"term,omitempty"`
	Serving   int            `json:"serving"`
	Majority  int            `json:"majority"`
	Endpoints []endpointJSON `json:"endpoints"`
}

type endpointJSON struct {
	Endpoint    string  `json:"endpoint"`
	Status      string  `json:"status"`
	Reason      string  `json:"reason,omitempty"`
	Error       string  `json:"error,omitempty"`
	Via         string  `json:"via,omitempty"`
	Cluster     string  `json:"cluster,omitempty"` // hex, as all ids
	Member      string  `json:"member,omitempty"`
	IsLeader    bool    `json:"is_leader"`
	Leader      string  `json:"leader,omitempty"`
	Term        uint64  `json:"term,omitempty"`
	ProofAgeMS  float64 `json:"proof_age_ms,omitempty"`
	RoundTripMS float64 `json:"round_trip_ms,omitempty"`
}

func printJSON(w io.Writer, c clusterStatus) error {
	out := statusJSON{Cluster: hex(uint64(c.cluster)), Leader: hex(uint64(c.leader)), Term: c.term, Serving: c.serving, Majority: c.majority}
	for _, a := range c.answers {
		id := a.news.Identity
		one := endpointJSON{
			Endpoint: a.endpoint, Status: a.status(), Reason: string(c.reason(a)), Via: string(a.via),
			Cluster: hex(id.Cluster), Member: hex(id.Member), IsLeader: c.isLeader(a), Leader: hex(id.Leader), Term: id.Term,
			ProofAgeMS: milliseconds(a.news.ProofAge), RoundTripMS: milliseconds(a.news.ShimRTT),
		}
		if a.news.Err != nil {
			one.Error = a.news.Err.Error()
		}
		out.Endpoints = append(out.Endpoints, one)
	}
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(out)
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
