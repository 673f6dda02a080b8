// Package orms has handlers that are written with GORM, ent, sqlx and bun, in the
// transaction of package idem: see package idemsql.
package orms

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log"

	"entgo.io/ent/dialect"
	entsql "entgo.io/ent/dialect/sql"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect/pgdialect"
	"gorm.io/driver/postgres"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/asaas/charges"
	"github.com/paghooks/paghooks/examples/recipes/orms/ent"
	"github.com/paghooks/paghooks/examples/recipes/orms/ent/order"
	"github.com/paghooks/paghooks/idem/idemsql"
)

// An Order is a row of the shop's orders. Reference is the externalReference of its charges.
type Order struct {
	ID        int64 `bun:",pk,autoincrement"`
	Reference string
	Paid      asaas.Money // numeric
}

// notStored is the error of a charge whose order is not there: the event is tried again, and at last parked.
func notStored(c charges.Change) error {
	return fmt.Errorf("the order of charge %s is not stored", c.After.ID)
}

// gormConfig logs no values, which are persons' data, and has no transactions of GORM's own, which would hide an error.
var gormConfig = &gorm.Config{
	SkipDefaultTransaction: true,
	Logger:                 logger.New(log.Default(), logger.Config{ParameterizedQueries: true, IgnoreRecordNotFoundError: true, LogLevel: logger.Error}),
}

// PaidWithGORM adds what is paid of a charge to its order.
func PaidWithGORM(ctx context.Context, tx pgx.Tx, c charges.Change) error {
	reference := c.After.ExternalReference.Or("")
	if reference == "" || c.Paid().IsZero() {
		return nil // money that names no order stays in asaas_charges
	}
	return idemsql.Run(ctx, tx, func(db *sql.DB) error {
		g, err := gorm.Open(postgres.New(postgres.Config{Conn: db}), gormConfig) // on db, never on the application's own connections
		if err != nil {
			return err
		}
		res := g.WithContext(ctx).Model(&Order{}).Where("reference = ?", reference).Update("paid", gorm.Expr("paid + ?", c.Paid()))
		if res.Error == nil && res.RowsAffected == 0 {
			return notStored(c)
		}
		return res.Error
	})
}

// OpenGORM is the application's own GORM, beside the handlers, on the pool that idem uses.
func OpenGORM(pool *pgxpool.Pool) (*gorm.DB, error) {
	return gorm.Open(postgres.New(postgres.Config{Conn: stdlib.OpenDBFromPool(pool)}), gormConfig)
}

// PaidWithEnt adds what is paid of a charge to its order. Ent adds integers: the order keeps cents.
func PaidWithEnt(ctx context.Context, tx pgx.Tx, c charges.Change) error {
	reference := c.After.ExternalReference.Or("")
	if reference == "" || c.Paid().IsZero() {
		return nil
	}
	return idemsql.Run(ctx, tx, func(db *sql.DB) error {
		client := ent.NewClient(ent.Driver(entsql.OpenDB(dialect.Postgres, db)))
		n, err := client.Order.Update().Where(order.Reference(reference)).AddPaidCents(c.Paid().Cents()).Save(ctx)
		if err == nil && n == 0 {
			return notStored(c)
		}
		return err
	})
}

// bunDialect is one for all events: bun keeps what it knows of tables in it.
var bunDialect = pgdialect.New()

// PaidWithBun adds what is paid of a charge to its order.
func PaidWithBun(ctx context.Context, tx pgx.Tx, c charges.Change) error {
	reference := c.After.ExternalReference.Or("")
	if reference == "" || c.Paid().IsZero() {
		return nil
	}
	return idemsql.Run(ctx, tx, func(db *sql.DB) error {
		res, err := bun.NewDB(db, bunDialect).NewUpdate().Model((*Order)(nil)).
			Set("paid = paid + ?", c.Paid()).Where("reference = ?", reference).Exec(ctx)
		if err != nil {
			return err
		}
		if n, err := res.RowsAffected(); n == 0 || err != nil {
			return errors.Join(err, notStored(c))
		}
		return nil
	})
}
