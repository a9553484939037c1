package command

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/pflag"
)

// variable is the environment variable of a flag.
func variable(flag string) string {
	return "QUORUMSHIM_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// fromEnvironment fills flags that were not given on the command line. An empty variable counts as
// not set, as a template leaves it.
func fromEnvironment(flags *pflag.FlagSet) error {
	var errs []error
	flags.VisitAll(func(f *pflag.Flag) {
		value := os.Getenv(variable(f.Name))
		if f.Changed || value == "" || f.Name == "help" || f.Name == "version" {
			return
		}
		if err := flags.Set(f.Name, value); err != nil {
			errs = append(errs, fmt.Errorf("%s=%s in the environment: %w", variable(f.Name), value, err))
		}
	})
	return errors.Join(errs...)
}
