// Package claims has the parts of claiming events that need no SQL: the position from which a search
// goes on, the signs of life of those that claim, and the attempt that runs alone.
package claims
