package main

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
)

var (
	before     = regexp.MustCompile(`(?s)\n*<!-- before the first version -->\n.*?\n<!-- end -->\n`)
	inLine     = regexp.MustCompile(`<!-- before the first version -->.*?<!-- end -->`)
	translated = regexp.MustCompile(`(?m)^<!-- translated from (\S+) [0-9a-f]{12} -->$`)
)

// finishGuides takes out of the documents what is for the time before the first version, and then has each
// translation name the version of its original.
func (r *repository) finishGuides() error {
	names, err := r.files("*.md")
	for _, name := range names {
		err = errors.Join(err, r.edit(name, func(text string) string {
			return inLine.ReplaceAllString(before.ReplaceAllString(text, "\n"), "")
		}))
	}
	for _, name := range names {
		err = errors.Join(err, r.edit(name, func(text string) string {
			return translated.ReplaceAllStringFunc(text, func(line string) string {
				original := translated.FindStringSubmatch(line)[1]
				content, reading := os.ReadFile(filepath.Join(r.dir, original))
				err = errors.Join(err, reading)
				sum := sha256.Sum256(content)
				return fmt.Sprintf("<!-- translated from %s %x -->", original, sum[:6])
			})
		}))
	}
	return err
}

// edit changes a file with a function of its text.
func (r *repository) edit(name string, change func(string) string) error {
	file := filepath.Join(r.dir, name)
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if changed := change(string(text)); changed != string(text) {
		err = os.WriteFile(file, []byte(changed), 0o644)
	}
	return err
}
