// Package inside leads from a receiver of package idem to methods that only the other packages of this project
// call, and that no program needs.
package inside

// Of returns the inside of a receiver, of its Endpoint or of Routes as an I: an interface of the caller,
// with the methods that it calls. It panics if the inside lacks one of them.
func Of[I any](receiver any) I { return Open(receiver).(I) }

// Open returns the inside of a receiver, of its Endpoint or of Routes. Package idem sets it.
var Open func(receiver any) any

// OtherTypes is the Label of observations of all event types that the application neither handles nor ignores.
const OtherTypes = "_other"
