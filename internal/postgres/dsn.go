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
	if isURL(dsn) {
		dsn = extendURL(dsn, options, schema)
	} else {
		dsn = extendWords(dsn, options, schema)
	}
	after, err := pgconn.ParseConfig(dsn)
	if err != nil || after.RuntimeParams["options"] != options || after.Database != before.Database || !sameServer(before, after) {
		return "", errNotUnderstood
	}
	return dsn, nil
}

// withDatabase returns the connection string with another database of the same server.
func withDatabase(dsn, name string) (string, error) {
	before, err := pgconn.ParseConfig(dsn)
	if err != nil {
		return "", err
	}
	if isURL(dsn) {
		dsn = exchangePath(dsn, name)
	} else {
		dsn += " dbname=" + name // the last one counts
	}
	after, err := pgconn.ParseConfig(dsn)
	if err != nil || after.Database != name || !sameServer(before, after) {
		return "", errNotUnderstood
	}
	return dsn, nil
}

var errNotUnderstood = errors.New("the database's connection string is not understood: " +
	"write it as postgres://user:password@host:port/database, its parts percent-encoded")

func isURL(dsn string) bool {
	return strings.HasPrefix(dsn, "postgres://") || strings.HasPrefix(dsn, "postgresql://")
}

func sameServer(a, b *pgconn.Config) bool {
	return a.Host == b.Host && a.Port == b.Port && a.User == b.User && a.Password == b.Password
}

func exchangePath(dsn, database string) string {
	base, query, _ := strings.Cut(dsn, "?")
	scheme, rest, _ := strings.Cut(base, "://")
	server, _, _ := strings.Cut(rest, "/")
	q, err := url.ParseQuery(query)
	if err != nil {
		return ""
	}
	q.Del("dbname") // these would win over the path
	q.Del("database")
	return scheme + "://" + server + "/" + database + "?" + encode(q)
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

// encode encodes the query of a connection string, in which + is a plus.
func encode(q url.Values) string { return strings.ReplaceAll(q.Encode(), "+", "%20") }
