package scalar

// Int is a whole number. It decodes from every spelling of one: 5, 5.00, 0.0,
// 1e2, "5". A number with a fraction is an error.
type Int int64

// UnmarshalJSON reads a JSON number, or one inside a string. null changes
// nothing.
func (n *Int) UnmarshalJSON(data []byte) error {
	if string(data) == "null" {
		return nil
	}
	d, err := parseDecimal(unquoted(data))
	if err == nil && d.scale > 0 {
		err = errFraction
	}
	if err != nil {
		return cannotDecode[Int](data, err)
	}
	*n = Int(d.coef)
	return nil
}
