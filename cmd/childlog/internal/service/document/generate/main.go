// Command generate writes the service's OpenAPI document; see package document.
package main

import (
	"log"
	"os"

	"childlog/cmd/childlog/internal/service/document"
)

func main() {
	b, err := document.Make("../../../..") // of go generate, which runs where the directive is
	if err == nil {
		err = os.WriteFile("openapi.json", b, 0o644)
	}
	if err != nil {
		log.Fatal(err)
	}
}
