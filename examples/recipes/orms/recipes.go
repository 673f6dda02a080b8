package orms

import (
	"context"
	"database/sql"
	"log"

	"entgo.io/ent/dialect"
	entsql "entgo.io/ent/dialect/sql"
	"gorm.io/driver/postgres"
	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/logger"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/examples/recipes/orms/ent"
	"github.com/paghooks/paghooks/examples/recipes/orms/ent/receipt"
	"github.com/paghooks/paghooks/idem/idemsql"
)

// A Receipt says that the money of a charge came once. Package charges says what is paid of it now.
type Receipt struct {
	ID     int64 `bun:",pk,autoincrement"`
	Charge string
	Value  string
}

// gormConfig logs no values, which are persons' data, and has no transactions of GORM's own:
// they would hide an error that is not looked at.
var gormConfig = &gorm.Config{
	SkipDefaultTransaction: true,
	Logger:                 logger.New(log.Default(), logger.Config{ParameterizedQueries: true, IgnoreRecordNotFoundError: true, LogLevel: logger.Error}),
}

// Register registers it as a handler.
func Register(events *asaas.Dispatcher) {
	events.OnPaymentReceived(idemsql.Handler(BookWithGORM))
}

// BookWithGORM writes the receipt of a charge once, in the event's transaction.
func BookWithGORM(ctx context.Context, db *sql.DB, e *asaas.PaymentEvent) error {
	g, err := gorm.Open(postgres.New(postgres.Config{Conn: db}), gormConfig) // on db, never on the application's own connections
	if err != nil {
		return err
	}
	booked := Receipt{Charge: e.Payment.ID, Value: e.Payment.Value.String()}
	return g.WithContext(ctx).Clauses(clause.OnConflict{DoNothing: true}).Create(&booked).Error // always look at Error
}

// BookWithEnt writes the receipt of a charge once, in the event's transaction.
func BookWithEnt(ctx context.Context, db *sql.DB, e *asaas.PaymentEvent) error {
	client := ent.NewClient(ent.Driver(entsql.OpenDB(dialect.Postgres, db)))
	booked, err := client.Receipt.Query().Where(receipt.Charge(e.Payment.ID)).Exist(ctx)
	if err != nil || booked {
		return err
	}
	return client.Receipt.Create().SetCharge(e.Payment.ID).SetValue(e.Payment.Value.String()).Exec(ctx)
}
