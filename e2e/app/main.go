package app

// Main is the program.
func Main() int { return 0 }
