package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"golang.org/x/tools/go/packages"
)

// surface lists the facts about the packages of the module in dir, and of the modules
// below it that its go.work uses, apart from programs and internal packages. It is that
// of one platform: the snapshot is the same whichever one it is taken on.
func surface(dir string, patterns ...string) ([]string, error) {
	loaded, err := packages.Load(&packages.Config{
		Mode: packages.NeedName | packages.NeedTypes | packages.NeedModule,
		Dir:  dir,
		Env:  append(os.Environ(), "GOOS=linux", "GOARCH=amd64", "GOWORK="), // the go.work that is there
	}, patterns...)
	if err != nil {
		return nil, fmt.Errorf("api: cannot load the packages: %w", err)
	}
	root := "" // the module in dir: the paths of the others begin with its path
	for _, p := range loaded {
		if m := p.Module; m != nil && (root == "" || len(m.Path) < len(root)) {
			root = m.Path
		}
	}
	var all []string
	for _, p := range loaded {
		if len(p.Errors) > 0 {
			return nil, fmt.Errorf("api: the packages do not build, fix them first: %w", p.Errors[0])
		}
		if p.Name != "main" && !slices.Contains(strings.Split(p.PkgPath, "/"), "internal") {
			all = append(all, facts(strings.TrimPrefix(strings.TrimPrefix(p.PkgPath, root), "/"), p.Types)...)
		}
	}
	if len(all) == 0 {
		return nil, errors.New("api: nothing is exported by " + strings.Join(patterns, " ") + ": run it in the module's root")
	}
	slices.Sort(all)
	return all, nil
}
