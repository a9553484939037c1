package report_test

import (
	"bytes"
	"os"
	"testing"

	"github.com/quorumwise/quorumwise/e2e/report"
)

func TestSampleForLooking(t *testing.T) {
	dir := os.Getenv("SAMPLE")
	if err := report.Write(dir, sampleRun(24)); err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := sampleRun(200).WriteHTML(&b); err != nil {
		t.Fatal(err)
	}
	t.Log(b.Len())
	report.Table(os.Stdout, sampleRun(24))
	report.Markdown(os.Stdout, sampleRun(24))
}
