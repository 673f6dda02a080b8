// Package command is the grammar of this project's commands, idem, asaas-queue, asaas-fake
// and zeltapay-fake: a verb, then flags and words in any order.
//
//   - The flags that every verb has may also stand before the verb.
//   - -flag and --flag are the same; after -- all are words.
//   - help and -h print to stdout, with status 0. An error is one line on stderr.
//   - -json prints one object per line to stdout, with names in snake_case and times in UTC. An
//     error is an object on stderr.
//   - A verb that changes something asks first. Without a terminal it changes nothing without -yes.
//   - The exit statuses are those of [Statuses].
package command
