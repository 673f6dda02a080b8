package idem

// MigrateFiles is Migrate with the files of another version.
var MigrateFiles = migrate
