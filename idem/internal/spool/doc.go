// Package spool keeps records on the disk of this machine until somebody has taken
// them elsewhere.
//
// A [Dir] is a directory with one file for each group of records. A file is
// written under a temporary name, flushed, renamed and never changed afterwards;
// it is removed when its records have been taken. So there is no torn tail and
// nothing to recover: a file that was not renamed was never confirmed. Each line of a file
// has a checksum, and its name has the number of its lines: damage costs the
// records that it hits, and is always noticed.
//
// A library would do more than that, and less: bbolt rewrites pages in place, where
// one that is damaged takes those below it along, and tidwall/wal, a log, has no
// checksums and cuts off all entries after a damaged one. A file per group needs no
// code for recovery.
//
// A [Keeper] keeps the events of one [Sink] in a Dir while that does not take them, and
// drains the Dir into it, in order, when it does.
//
// It needs only the standard library, and knows nothing of the content of a record.
package spool
