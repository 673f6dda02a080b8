package main

import (
	"bytes"
	"errors"
	"fmt"
	"go/importer"
	"go/token"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
)

// surface lists the facts about the packages of the module in dir, apart from
// programs and internal packages.
func surface(dir string, patterns ...string) ([]string, error) {
	listed, err := list(dir, patterns)
	if err != nil {
		return nil, err
	}
	exports := make(map[string]string)
	for _, p := range listed {
		exports[p.path] = p.export
	}
	// The compiler's own description of each package: it is read by the version
	// of Go that wrote it a moment ago.
	imports := importer.ForCompiler(token.NewFileSet(), "gc", func(path string) (io.ReadCloser, error) {
		if exports[path] == "" {
			return nil, fmt.Errorf("%s is not among the dependencies", path)
		}
		return os.Open(exports[path])
	})
	var all []string
	for _, p := range listed {
		if !p.public {
			continue
		}
		pkg, err := imports.Import(p.path)
		if err != nil {
			return nil, fmt.Errorf("api: cannot read what the compiler says of %s: %w", p.path, err)
		}
		all = append(all, facts(p.name, pkg)...)
	}
	if len(all) == 0 {
		return nil, errors.New("api: nothing is exported by " + strings.Join(patterns, " ") + ": run it in the module's root")
	}
	slices.Sort(all)
	return all, nil
}

// listing is a package, as go list tells it.
type listing struct {
	path, export string
	name         string // its path below the module's
	public       bool   // whether users can import it
}

// list builds the packages and what they need, for one platform: the snapshot
// is the same whichever one it is taken on.
func list(dir string, patterns []string) ([]listing, error) {
	const format = "{{.ImportPath}}\t{{.Export}}\t{{.DepOnly}}\t{{.Name}}\t{{with .Module}}{{.Path}}{{end}}"
	cmd := exec.Command("go", append([]string{"list", "-export", "-deps", "-f", format}, patterns...)...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOOS=linux", "GOARCH=amd64")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("api: the packages do not build, mend them first: %w\n%s", err, stderr.String())
	}
	var all []listing
	for line := range strings.Lines(string(out)) {
		is := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		path, export, depOnly, name, module := is[0], is[1], is[2], is[3], is[4]
		all = append(all, listing{
			path:   path,
			export: export,
			name:   strings.TrimPrefix(strings.TrimPrefix(path, module), "/"),
			public: depOnly == "false" && name != "main" && !slices.Contains(strings.Split(path, "/"), "internal"),
		})
	}
	return all, nil
}
