package pgtx

// MayMove reports whether the search path is put back after sql.
func MayMove(sql string) bool { return effectOf(sql) >= moves }

// MayLast reports whether a connection is closed after sql.
func MayLast(sql string) bool { return effectOf(sql) >= lasts }
