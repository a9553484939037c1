// Package nethosts is a lab of hosts on one machine.
package nethosts
