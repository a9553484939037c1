// Package imports holds the test of the module's import rules: which of our
// packages may know which, and that an application never links an etcd server.
package imports
