// Package history judges what applications saw of a store against the store's own
// history. Everything in it is pure: records in, violations out.
package history
