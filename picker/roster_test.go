package picker

import "testing"

func TestRosterFindsTheMainInstance(t *testing.T) {
	type step func(*roster, map[string]*policy)
	announce := func(who string, addresses ...string) step {
		return func(r *roster, all map[string]*policy) {
			if all[who] == nil {
				all[who] = &policy{target: who}
			}
			r.announce(all[who], addresses)
		}
	}
	leave := func(who string) step {
		return func(r *roster, all map[string]*policy) { r.leave(all[who]) }
	}
	configure := func(addresses ...string) step {
		return func(r *roster, _ map[string]*policy) { r.configure(addresses) }
	}
	for _, tc := range []struct {
		name  string
		steps []step
		want  string // main, "" for none
	}{
		{"nobody", nil, ""},
		{"the configured set, in any order", []step{configure("a", "b"), announce("main", "b", "a")}, "main"},
		{"a side connection built first is not it", []step{configure("a", "b"), announce("side", "a"), announce("main", "a", "b")}, "main"},
		{"a side connection alone is not it", []step{configure("a", "b"), announce("side", "a")}, ""},
		{"it stays so whatever its endpoints become", []step{configure("a", "b"), announce("main", "a", "b"), announce("main", "c"), announce("side", "a")}, "main"},
		{"several endpoints beat one where nothing is configured", []step{announce("side", "a"), announce("main", "a", "b")}, "main"},
		{"endpoints changed before the first use", []step{configure("a", "b", "c"), announce("main", "x", "y"), announce("side", "a")}, "main"},
		{"the exact set beats several", []step{configure("a", "b"), announce("other", "a", "b", "c"), announce("main", "a", "b")}, "main"},
		{"of equals the first built", []step{configure("a"), announce("main", "a"), announce("side", "a")}, "main"},
		{"of equals the next when the first closes", []step{configure("a"), announce("side", "a"), announce("main", "a"), leave("side")}, "main"},
		{"several addresses later beat the lone one", []step{configure("a"), announce("side", "a"), announce("main", "a"), announce("main", "a", "b")}, "main"},
		{"closing gives the place to nobody unfit", []step{configure("a", "b"), announce("main", "a", "b"), announce("side", "a"), leave("main")}, ""},
		{"idle and rebuilt", []step{configure("a", "b"), announce("main", "a", "b"), leave("main"), announce("again", "a", "b")}, "again"},
		{"idle and rebuilt with endpoints set meanwhile", []step{configure("a", "b"), announce("main", "a", "b"), announce("main", "c"), leave("main"), announce("side", "a"), announce("again", "c")}, "again"},
		{"configured afterwards", []step{announce("side", "a"), announce("main", "b"), configure("b"), announce("main", "b")}, "main"},
		{"leaving twice or unknown", []step{announce("x", "a"), leave("x"), leave("x"), leave("y")}, ""},
		{"no addresses yet", []step{configure("a", "b"), announce("main"), announce("main", "a", "b")}, "main"},
		{"doubled addresses are one", []step{configure("a", "b"), announce("side", "a", "a")}, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var r roster
			all := map[string]*policy{}
			for _, s := range tc.steps {
				s(&r, all)
			}
			got := ""
			if p := r.mainPolicy(); p != nil {
				got = p.target
			}
			if got != tc.want {
				t.Errorf("main is %q, want %q", got, tc.want)
			}
		})
	}
}
