// Command gen writes the guard's tables: gen FILE.
package main

import (
	"fmt"
	"os"

	"github.com/pysandboxes/pysandboxes/core/audit"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: gen FILE")
		os.Exit(2)
	}
	if err := os.WriteFile(os.Args[1], []byte(audit.RegistryC()), 0o644); err != nil {
		fmt.Fprintln(os.Stderr, "gen:", err)
		os.Exit(1)
	}
}
