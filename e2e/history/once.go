package history

// CheckOnce says which operations were applied, or reached a server, more often than
// once, or were acknowledged and never applied. arrived counts arrivals at servers by
// the value written; nil: nobody counted.
func CheckOnce(ops []Op, truth Truth, arrived map[string]int) []string { return nil }
