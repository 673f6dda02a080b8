// Command words counts the words that make comments and documents hard to read, and prints the places
// where most of them are:
//
//	go run ./.ci/words          # fails above the limits
//	go run ./.ci/words -worst 20
//
// A sentence that says "what fails is sent again" has a clause where a noun should stand: "a failed event is
// sent again". One with "who", "whose", "whoever" or "nobody" speaks of code as if it were a person, or denies
// where it could assert. Both are allowed, rarely. A doc comment that begins "X is what", "X is how", "X is why"
// or "X is where", or that "tells whether", is not: it returns, reports, holds or sets something.
//
// Counted are the comments of Go files, nested modules included, and the text of English Markdown files; the
// comments of tests are counted apart, and have no limit. Left out are generated files, testdata, blocks of code and quotations (lines that begin with ">").
package main
