package main

import (
	"errors"
	"fmt"
	"os"
)

const usage = `usage: go run ./gen generate SPEC DIR

	generate  reads the OpenAPI document SPEC and writes types.gen.go and
	          events.gen.go into the package directory DIR`

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) == 0 {
		return errors.New(usage)
	}
	switch command, args := args[0], args[1:]; command {
	case "generate":
		if len(args) != 2 {
			return errors.New(usage)
		}
		return generate(args[0], args[1])
	default:
		return fmt.Errorf("gen: there is no command %q\n\n%s", command, usage)
	}
}

// generate writes nothing unless everything is right.
func generate(specPath, dir string) error {
	files, err := render(specPath, dir)
	if err != nil {
		return err
	}
	for _, f := range files {
		if err := write(f); err != nil {
			return err
		}
	}
	return nil
}
