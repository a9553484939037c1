package membership

import (
	"fmt"
	"slices"
	"strings"
)

// Alarm is a state of the whole cluster that an operator has to end.
type Alarm int

const (
	// AlarmNoSpace: a member's database reached its quota. Every member
	// refuses writes that need space until the alarm is disarmed.
	AlarmNoSpace Alarm = 1
	// AlarmCorrupt: members disagree about the data. Every member refuses
	// writes until the alarm is disarmed.
	AlarmCorrupt Alarm = 2
)

// String returns etcd's own name of the alarm.
func (a Alarm) String() string {
	switch a {
	case AlarmNoSpace:
		return "NOSPACE"
	case AlarmCorrupt:
		return "CORRUPT"
	default:
		return fmt.Sprintf("ALARM(%d)", int(a))
	}
}

// parseAlarms finds alarms in the errors of a Status answer. They are the debug
// text of a protobuf message ("memberID:1  alarm:NOSPACE"), whose spacing
// changes from build to build on purpose, so it looks for nothing but the value
// after the field's name. Whatever else stands there is ignored.
func parseAlarms(errors []string) []Alarm {
	var alarms []Alarm
	for _, text := range errors {
		for _, a := range []Alarm{AlarmNoSpace, AlarmCorrupt} {
			if namesAlarm(text, a) && !slices.Contains(alarms, a) {
				alarms = append(alarms, a)
			}
		}
	}
	slices.Sort(alarms)
	return alarms
}

func namesAlarm(text string, a Alarm) bool {
	for {
		_, after, found := strings.Cut(text, "alarm:")
		if !found {
			return false
		}
		value := strings.TrimLeft(after, " ")
		end := strings.IndexFunc(value, func(r rune) bool {
			return r != '_' && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
		})
		if end >= 0 {
			value = value[:end]
		}
		if value == a.String() || value == fmt.Sprint(int(a)) {
			return true
		}
		text = after
	}
}
