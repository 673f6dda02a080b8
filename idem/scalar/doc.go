// Package scalar has types of single values that all providers use: exact
// numbers, days, instants, and numbers and texts that are sent in several
// spellings. The packages that gen makes use them.
//
// | In a spec                            | Go        |
// |--------------------------------------|-----------|
// | number (also float, double, decimal) | [Decimal] |
// | number (percent)                     | [Percent] |
// | integer (also int32, int64)          | [Int]     |
// | integer (cents)                      | [Cents]   |
// | string (date)                        | [Date]    |
// | string (date-time)                   | [Time]    |
// | string (text)                        | [Text]    |
//
// No value is ever a float. All of them decode from JSON and are arguments of
// tx.Exec as they are.
package scalar
