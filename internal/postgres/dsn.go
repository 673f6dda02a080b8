package postgres

import (
	"errors"
	"net/url"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

// withSchema returns the connection string with the schema as its search_path,
// and as its name among the server's sessions.
//
// The path travels in options, which psql and most drivers know, and not as a
// search_path parameter, which only some do.
func withSchema(dsn, schema string) (string, error) {
	before, err := pgconn.ParseConfig(dsn)
	if err != nil {
		return "", err
	}
	options := strings.TrimSpace(before.RuntimeParams["options"] + " -csearch_path=" + schema)
	if strings.HasPrefix(dsn, "postgres://") || strings.HasPrefix(dsn, "postgresql://") {
		dsn = extendURL(dsn, options, schema)
	} else {
		dsn = extendWords(dsn, options, schema)
	}
	after, err := pgconn.ParseConfig(dsn)
	if err != nil || after.RuntimeParams["options"] != options || !sameDatabase(before, after) {
		return "", errors.New("the database's connection string is not understood: write it as postgres://user:password@host:port/database, its parts percent-encoded")
	}
	return dsn, nil
}

func sameDatabase(a, b *pgconn.Config) bool {
	return a.Host == b.Host && a.Port == b.Port && a.Database == b.Database && a.User == b.User && a.Password == b.Password
}

func extendURL(dsn, options, schema string) string {
	base, query, _ := strings.Cut(dsn, "?")
	q, err := url.ParseQuery(query)
	if err != nil {
		return ""
	}
	q.Del("search_path")
	q.Set("options", options)
	q.Set("application_name", schema)
	return base + "?" + encode(q)
}

func extendWords(dsn, options, schema string) string {
	extended := dsn + " options='" + quoted.Replace(options) + "' application_name=" + schema
	if strings.Contains(dsn, "search_path") {
		extended += " search_path=" + schema // the one that is there would win over the options
	}
	return extended
}

var quoted = strings.NewReplacer(`\`, `\\`, `'`, `\'`)

// encode is url.Values.Encode for connection strings, in which + is a plus.
func encode(q url.Values) string { return strings.ReplaceAll(q.Encode(), "+", "%20") }
