package imports

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const (
	module     = "github.com/quorumwise/quorumwise"
	etcdServer = "go.etcd.io/etcd/server/v3"
)

// allowed lists, for each package tree, which other trees of ours it may import
// directly. The longest matching entry counts.
var allowed = map[string][]string{
	"membership":              {},
	"membership/inproc":       {"membership"},
	"healthsvc":               {},
	"servershim":              {"membership", "healthsvc"},
	"servershim/sidecar":      {"membership", "healthsvc", "servershim"},
	"servershim/cmd":          {"membership", "healthsvc", "servershim", "servershim/sidecar"},
	"servershim/inproc":       {"membership", "membership/inproc", "healthsvc", "servershim"},
	"prober":                  {"membership", "healthsvc"},
	"picker":                  {},
	"client":                  {"membership", "prober", "picker"},
	"healthsvc/healthsvctest": {"healthsvc"},
}

// serverless are the trees that an application or an operator's sidecar links:
// none may bring an etcd server along.
var serverless = []string{
	"client", "prober", "picker", "healthsvc", "healthsvc/healthsvctest", "membership",
	"servershim", "servershim/sidecar", "servershim/cmd/quorumshim",
}

func TestPackagesImportOnlyWhatTheirTreeMay(t *testing.T) {
	seen := 0
	for line := range strings.Lines(goList(t, "-f", `{{.ImportPath}} {{join .Imports " "}}`, module+"/...")) {
		fields := strings.Fields(line)
		pkg, ok := strings.CutPrefix(fields[0], module+"/")
		if !ok || strings.HasPrefix(pkg, "e2e") {
			continue // end-to-end code joins everything
		}
		seen++
		for _, bad := range forbidden(pkg, fields[1:]) {
			t.Errorf("%s imports %s: its tree may import only %v", pkg, bad, rule(pkg))
		}
	}
	if seen < 7 {
		t.Fatalf("only %d packages were checked; want at least the seven of the design", seen)
	}
}

func TestApplicationsNeverLinkAnEtcdServer(t *testing.T) {
	for _, tree := range serverless {
		deps := goList(t, "-deps", module+"/"+tree)
		if i := strings.Index(deps, etcdServer); i >= 0 {
			t.Errorf("%s links an etcd server: %s", tree, strings.TrimSpace(strings.SplitN(deps[i:], "\n", 2)[0]))
		}
	}
}

// The rule itself must be able to fail.
func TestForbiddenImportIsCaught(t *testing.T) {
	got := forbidden("picker", []string{"fmt", module + "/prober", module + "/picker/internal"})
	if want := []string{"prober"}; !slices.Equal(got, want) {
		t.Errorf("forbidden(picker) = %v, want %v", got, want)
	}
}

// forbidden returns the imports of ours that the package must not have.
func forbidden(pkg string, imports []string) []string {
	own := tree(pkg)
	var bad []string
	for _, imp := range imports {
		imp, ok := strings.CutPrefix(imp, module+"/")
		if !ok || tree(imp) == own || slices.Contains(rule(pkg), tree(imp)) {
			continue
		}
		bad = append(bad, imp)
	}
	return bad
}

func rule(pkg string) []string { return allowed[tree(pkg)] }

// tree is the longest entry of the table that the package stands under.
func tree(pkg string) string {
	for p := pkg; ; p = p[:strings.LastIndex(p, "/")] {
		if _, ok := allowed[p]; ok || !strings.Contains(p, "/") {
			return p
		}
	}
}

func goList(t *testing.T, args ...string) string {
	t.Helper()
	out, err := exec.Command("go", append([]string{"list"}, args...)...).Output()
	if err != nil {
		t.Fatalf("go list %v: %v", args, err)
	}
	return string(out)
}
