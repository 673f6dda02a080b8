// Api guards the exported API of the packages that users import: a name, a
// field, a signature that is in the snapshot, api.txt, must still be there as
// it was. New names are fine.
//
//	bash .ci/api/check   # says what changed incompatibly; status 1 then, 2 if it could not look
//	bash .ci/api/accept  # takes the API as it is now for the snapshot
//
// The snapshot is text, one fact a line, the same on every machine and with
// every version of Go: its diff shows in a review the part that users see. Names
// of parameters, comments and field tags are not in it.
//
// golang.org/x/exp/apidiff compares two loaded packages. Its old
// side would be 600 kB of binary with the paths of one machine in it, or a commit
// that every checkout must have: nothing that a review can read.
//
// A fact that is gone breaks a user's build, in one of these ways:
// a name is removed or has another type; a constant has another value; an
// interface that others implement has one more method; a struct can no longer
// be compared. Two changes break no build and are reported nevertheless: a method
// moves from the pointer to the value, a type parameter gets another name.
package main
