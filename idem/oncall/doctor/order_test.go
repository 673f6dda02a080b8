package doctor

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/paghooks/paghooks/idem/idemtest"
)

// A physical copy on another base image: the version that is recorded is not that of the library which sorts.
func TestIndexesWhoseOrderHasChangedAreFoundAndNoOthers(t *testing.T) {
	t.Parallel()
	p := newPatient(t, idemtest.URL(t))
	var server int
	var hasICU bool
	if err := p.Pool.QueryRow(t.Context(), `select current_setting('server_version_num')::int, exists (select from pg_collation where collprovider = 'i')`).Scan(&server, &hasICU); err != nil {
		t.Fatal(err)
	}
	if server < 150000 || !hasICU {
		t.Skip("this Postgres has no database whose order has a version")
	}
	p = p.elsewhere(`template template0 encoding 'UTF8' locale_provider icu icu_locale 'pt-BR' locale 'C'`)
	p.Exec(`
create collation german (provider = icu, locale = 'de');
create table orders (id text primary key, buyer text collate german, mail text collate "C" unique, total numeric);
create index orders_buyer on orders (buyer);
create index orders_like on orders (id text_pattern_ops);
create index orders_hash on orders using hash (id);
create index orders_total on orders (total);
insert into orders values ('a', 'b', 'c', 1)`)
	p.wantNo("order", Error, "")
	p.Exec(`update pg_database set datcollversion = 'of another image' where datname = current_database();
		update pg_collation set collversion = 'older' where collname = 'german'`)
	var found []Finding
	for _, f := range p.check() {
		if f.Check == "order" {
			found = append(found, f)
		}
	}
	const installed = `select quote_ident(datname), pg_database_collation_actual_version(oid), pg_collation_actual_version('german'::regcollation)
		from pg_database where datname = current_database()`
	var name, now, german string
	if err := p.Pool.QueryRow(t.Context(), installed).Scan(&name, &now, &german); err != nil {
		t.Fatal(err)
	}
	want := []Finding{{
		Severity: Error, Evidence: "orders_pkey, in the order of the database: version of another image, and version " + now + " is installed",
		Command: `reindex index orders_pkey; alter database ` + name + ` refresh collation version`,
	}, {
		Severity: Warning, Evidence: "orders_buyer, in the order of german: version older, and version " + german + " is installed",
		Command: `reindex index orders_buyer; alter collation german refresh version`,
	}}
	if diff := cmp.Diff(want, found, cmpopts.IgnoreFields(Finding{}, "Check", "Problem", "Remedy")); diff != "" {
		t.Fatal("findings (-want +got):\n" + diff)
	}
	for _, f := range found {
		p.follow(f)
	}
	p.wantNo("order", Error, "")
	p.wantNo("order", Warning, "")
}

// Postgres 14 and older do not record the version of a database: that of the collation with its name counts.
func TestTheOrderOfAnOlderPostgresIsThatOfItsLibrary(t *testing.T) {
	t.Parallel()
	p := newPatient(t, idemtest.URL(t))
	conn := p.Session(`select 1`)
	rows, err := conn.Query(t.Context(), `with versions (collation_id, name, recorded, actual, refresh) as (`+libraryVersion+collationVersions+`)`+changedOrder)
	if err != nil {
		t.Fatal(err)
	}
	rows.Close()
	if rows.Err() != nil || rows.CommandTag().RowsAffected() != 0 {
		t.Errorf("%d findings, %v, want none", rows.CommandTag().RowsAffected(), rows.Err())
	}
}
