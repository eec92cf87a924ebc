// Command gen writes the pages of docs/reference: gen FOLDER.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/pysandboxes/pysandboxes/core/reference"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: gen FOLDER")
		os.Exit(2)
	}
	for name, page := range reference.Pages {
		if err := os.WriteFile(filepath.Join(os.Args[1], name), []byte(page()), 0o644); err != nil {
			fmt.Fprintln(os.Stderr, "gen:", err)
			os.Exit(1)
		}
	}
}
