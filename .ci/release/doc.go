// Release keeps the modules of this repository such that each can be installed, and
// makes versions of them:
//
//	go run ./.ci/release check     # reports why users could not install a module
//	go run ./.ci/release tidy      # is go mod tidy for every module but the root
//	go run ./.ci/release -n v0.2.0 # shows the commit and the tags that the next line makes
//	go run ./.ci/release v0.2.0    # commits and tags a version, for you to look at and to push
//
// The root is one module, and every folder with a go.mod is another one. Those in
// idem/…/idem… are for users. A version has all of them, and a tag for the root and each
// module for users, on one commit. Modules require that version of each other, without
// replace, as users need it. go.work lets them build here before that version exists.
//
// go mod tidy ignores go.work, and would ask a proxy for a version that does not exist:
// hence tidy. go.sum has the sums of this repository's own modules only in the commits
// of versions. They are those that the go command itself computes from the tags: a module's
// zip has no file of another module, so that the sum of the root is known before the
// go.sum of the others is written, in the same commit.
//
// A version is made in a clone, and reaches the repository as a whole or not at all.
package main
