package nethosts

// Register names a program that Host.StartSelf can run. Call it before Enter.
func Register(name string, main func() int) {}

// Enter puts the process into namespaces of its own; call it first in main.
func Enter() error { return errNotYet }

// Outside runs f on a thread in the network that the process was started in,
// where a module proxy can be reached. An *UnavailableError where this is not
// allowed (without root): build what is needed before Enter then.
func Outside(f func() error) error { return errNotYet }
