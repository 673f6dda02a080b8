package asaas

import (
	"sync"
	"time"

	"github.com/paghooks/paghooks/idem/value"
)

// Date is a day, as Asaas wrote it: "2026-08-08", but also "08/08/2026" or
// "2026-08-08T03:00:00+0000", because the spelling differs between fields and
// changes. It is a [value.DateIn] of Brasília.
type Date = value.DateIn[brazil]

// DateTime is an instant, as Asaas wrote it: "2026-08-08 20:45:13", which is
// Brasília time, or "2026-08-08T23:45:13Z". A day without a time is its first
// instant. It is a [value.TimeIn] of Brasília.
type DateTime = value.TimeIn[brazil]

// Brasilia returns the time zone of every time that Asaas writes without one.
func Brasilia() *time.Location { return brasilia() }

var brasilia = sync.OnceValue(func() *time.Location {
	if loc, err := time.LoadLocation("America/Sao_Paulo"); err == nil {
		return loc
	}
	return time.FixedZone("-03", -3*60*60) // no time zone data; Brazil has had no summer time since 2019
})

// brazil is the zone of all that Asaas writes.
type brazil struct{}

func (brazil) Location() *time.Location { return brasilia() }

func (brazil) Layouts() []string { return brazilian }

var brazilian = []string{"2006-01-02", "02/01/2006", "02/01/2006 15:04:05"}
