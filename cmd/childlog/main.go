// Command childlog keeps and explains append-only logs of delegated agent
// sessions. Run it without arguments for an overview. What it does is in package
// command.
package main

import (
	"os"

	"childlog/cmd/childlog/internal/command"
)

func main() { os.Exit(command.Main()) }
