package membership

import (
	"slices"
	"strings"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
)

func TestAlarmsAreFoundInStatusErrors(t *testing.T) {
	real := (&pb.AlarmMember{MemberID: 1, Alarm: pb.AlarmType_CORRUPT}).String()
	for _, c := range []struct {
		why    string
		errors []string
		want   []Alarm
	}{
		{"none", nil, nil},
		{"as this version of protobuf prints it", []string{real}, []Alarm{AlarmCorrupt}},
		{"one space", []string{"memberID:1 alarm:NOSPACE"}, []Alarm{AlarmNoSpace}},
		{"two spaces, trailing one, as gogo printed it", []string{"memberID:1  alarm:NOSPACE "}, []Alarm{AlarmNoSpace}},
		{"space after the colon", []string{"alarm: CORRUPT"}, []Alarm{AlarmCorrupt}},
		{"as a number", []string{"memberID:2 alarm:1"}, []Alarm{AlarmNoSpace}},
		{"both, twice, the other way round", []string{real, "alarm:NOSPACE", real}, []Alarm{AlarmNoSpace, AlarmCorrupt}},
		{"in one text", []string{"alarm:CORRUPT, alarm:NOSPACE"}, []Alarm{AlarmNoSpace, AlarmCorrupt}},
		{"no leader is no alarm", []string{"etcdserver: no leader"}, nil},
		{"an alarm of a later etcd", []string{"memberID:1 alarm:NOSPACE_SOON", "alarm:NONE", "alarm:11", "alarm:"}, nil},
		{"the word alone", []string{"NOSPACE", "CORRUPT file"}, nil},
	} {
		if got := parseAlarms(c.errors); !slices.Equal(got, c.want) {
			t.Errorf("%s: got %v for %q, want %v", c.why, got, c.errors, c.want)
		}
	}
}

func FuzzParseAlarms(f *testing.F) {
	f.Add("memberID:1 alarm:NOSPACE", "etcdserver: no leader")
	f.Add("alarm:alarm:CORRUPT", "alarm: \xff")
	f.Fuzz(func(t *testing.T, a, b string) {
		got := parseAlarms([]string{a, b})
		if !slices.IsSorted(got) || len(got) > 2 {
			t.Errorf("got %v, want each alarm once, in order", got)
		}
		for _, alarm := range got {
			if alarm != AlarmNoSpace && alarm != AlarmCorrupt {
				t.Errorf("got %v, want known alarms only", alarm)
			}
			if !strings.Contains(a+b, "alarm:") {
				t.Errorf("got %v out of %q and %q, which name none", got, a, b)
			}
		}
	})
}
