//go:build linux

package main

import (
	"regexp"
	"strings"
)

var plainWord = regexp.MustCompile(`^[\w@%+=:,./-]+$`)

// quote makes one word of a shell's out of a text.
func quote(s string) string {
	if plainWord.MatchString(s) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

func quoted(texts []string) []string {
	words := make([]string, len(texts))
	for i, t := range texts {
		words[i] = quote(t)
	}
	return words
}

func join(words []string) string { return strings.Join(words, " ") }
