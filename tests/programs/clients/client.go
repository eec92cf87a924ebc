// Fetches /hello from the port that it is given, on 127.0.0.1, over Go's own network code.
package main

import (
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"time"
)

func main() {
	connection, err := net.DialTimeout("tcp", "127.0.0.1:"+os.Args[1], 10*time.Second)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Fprint(connection, "GET /hello HTTP/1.0\r\n\r\n")
	answer, err := io.ReadAll(connection)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	_, body, _ := strings.Cut(string(answer), "\r\n\r\n")
	fmt.Print(body)
}
