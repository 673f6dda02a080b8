// Package orms has handlers that are written with GORM, ent, sqlx and bun, in the
// transaction of package idem: see package idemsql.
package orms

import (
	"context"
	"database/sql"
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

// An Order is a row of the shop's orders. Reference is the externalReference of its
// charges.
type Order struct {
	ID        int64 `bun:",pk,autoincrement"`
	Reference string
	Paid      asaas.Money // numeric
	Settled   asaas.Money // numeric: ship once it reaches the total
}

// gormConfig logs no values, which are persons' data, and has no transactions of GORM's
// own, which would hide an error.
var gormConfig = &gorm.Config{
	SkipDefaultTransaction: true,
	Logger: logger.New(log.Default(), logger.Config{
		ParameterizedQueries:      true,
		IgnoreRecordNotFoundError: true,
		LogLevel:                  logger.Error,
	}),
}

// PaidWithGORM sets an order to the sum of its charges. An order that is not there fails
// the event: charges.Orders sees to that.
func PaidWithGORM(
	ctx context.Context, tx pgx.Tx, o charges.Order,
) (orders int64, err error) {
	err = idemsql.Run(ctx, tx, func(db *sql.DB) error {
		// On db, never on the application's own connections.
		g, err := gorm.Open(postgres.New(postgres.Config{Conn: db}), gormConfig)
		if err != nil {
			return err
		}
		res := g.WithContext(ctx).Model(&Order{}).Where("reference = ?", o.Reference).
			Updates(map[string]any{"paid": o.Paid, "settled": o.Settled})
		orders = res.RowsAffected
		return res.Error
	})
	return orders, err
}

// OpenGORM is the application's own GORM, beside the handlers, on the pool that idem uses.
func OpenGORM(pool *pgxpool.Pool) (*gorm.DB, error) {
	return gorm.Open(postgres.New(postgres.Config{Conn: stdlib.OpenDBFromPool(pool)}), gormConfig)
}

// PaidWithEnt sets an order to the sum of its charges. Ent has no exact decimals: the order keeps cents.
func PaidWithEnt(ctx context.Context, tx pgx.Tx, o charges.Order) (orders int64, err error) {
	if o.Kind != charges.Reference {
		return 0, nil
	}
	err = idemsql.Run(ctx, tx, func(db *sql.DB) error {
		client := ent.NewClient(ent.Driver(entsql.OpenDB(dialect.Postgres, db)))
		n, err := client.Order.Update().Where(order.Reference(o.Name)).SetPaidCents(o.Paid.Cents()).SetSettledCents(o.Settled.Cents()).Save(ctx)
		orders = int64(n)
		return err
	})
	return orders, err
}

// bunDialect is one for all events: bun keeps what it knows of tables in it.
var bunDialect = pgdialect.New()

// PaidWithBun sets an order to the sum of its charges.
func PaidWithBun(ctx context.Context, tx pgx.Tx, o charges.Order) (orders int64, err error) {
	err = idemsql.Run(ctx, tx, func(db *sql.DB) error {
		res, err := bun.NewDB(db, bunDialect).NewUpdate().Model((*Order)(nil)).
			Set("paid = ?, settled = ?", o.Paid, o.Settled).Where("reference = ?", o.Reference).Exec(ctx)
		if err != nil {
			return err
		}
		orders, err = res.RowsAffected()
		return err
	})
	return orders, err
}

// PaidWithSQL sets an order to the sum of its charges.
func PaidWithSQL(ctx context.Context, tx pgx.Tx, o charges.Order) (orders int64, err error) {
	err = idemsql.Run(ctx, tx, func(db *sql.DB) error {
		res, err := db.ExecContext(ctx, `update orders set paid = $1, settled = $2 where reference = $3`, o.Paid, o.Settled, o.Reference)
		if err != nil {
			return err
		}
		orders, err = res.RowsAffected()
		return err
	})
	return orders, err
}
