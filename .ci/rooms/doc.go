// Rooms checks that the files of a package can be read in one direction:
//
//	go run ./.ci/rooms ./idem ./idem/internal/...
//
// A file uses another one if it names something that the other one declares: a
// function, a type, a field, a method. Calls of methods count, and so do those that
// an embedded type promotes. For each package it reports
//
//   - a cycle: files that use each other, with the names that close it;
//   - a file of more than 300 lines of code, blank lines and comments apart.
//
// Merging two files is no order, which is why the second one is there.
//
// A package with a doc.go that lists its files, in an indented block below the heading
// "Files", is read in that order: each file uses only files above it, and each file
// is in the list once, by its name without ".go". Words behind "//" explain the line.
//
// The exit status is 1 if there is something to report, 2 if it could not look.
package main
