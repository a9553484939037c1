package report

// look is how a state looks: a class of the style sheet, which gives it a colour and a
// pattern, and the word that stands in it. Colours alone would be lost in print and on
// a reader who cannot tell them apart; patterns alone would be slow to read.
type look struct {
	class, word string
	calm        bool // may be left out where there is no room for it
}

// looks by state, of members, shims and grades. One look has one meaning: green is
// usable, yellow doubted, orange and red are not usable, black is gone.
var looks = map[string]look{
	// what a member truly is
	"leader":    {"leader", "leader", true},
	"quorum":    {"good", "quorum", true},
	"learner":   {"aside", "learner", true},
	"no-leader": {"doubt", "no leader", false},
	"no-quorum": {"bad", "no quorum", false},
	"mute":      {"worse", "mute", false},
	"frozen":    {"frozen", "frozen", false},
	"stopped":   {"gone", "stopped", false},
	// what its shim says
	"serving":     {"good", "serving", true},
	"not-serving": {"bad", "not serving", false},
	"silent":      {"worse", "silent", false},
	"none":        {"blank", "no shim", true},
	// what our client makes of it
	"healthy":   {"good", "healthy", true},
	"unknown":   {"unknown", "unknown", true},
	"suspect":   {"doubt", "suspect", false},
	"unhealthy": {"worse", "unhealthy", false},
	"parked":    {"aside", "parked", true},
}

func lookOf(state string) look {
	if l, ok := looks[state]; ok {
		return l
	}
	return look{class: "unknown", word: state}
}
