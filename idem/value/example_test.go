package value_test

import (
	"encoding/json"
	"fmt"

	"github.com/paghooks/paghooks/idem/value"
)

func Example() {
	var charge struct {
		PaidOn value.Optional[string] `json:"paidOn,omitzero"`
		Card   value.Optional[string] `json:"card,omitzero"`
		Note   value.Optional[string] `json:"note,omitzero"`
	}
	body := []byte(`{"paidOn":"2026-08-08","card":null}`)
	if err := json.Unmarshal(body, &charge); err != nil {
		fmt.Println(err)
	}

	day, ok := charge.PaidOn.Get()
	fmt.Println("paid on:", day, ok)
	fmt.Println("card is null:", charge.Card.IsNull())
	fmt.Println("note is absent:", charge.Note.IsZero())
	fmt.Println("note:", charge.Note.Or("none"))

	again, _ := json.Marshal(charge)
	fmt.Println(string(again))
	// Output:
	// paid on: 2026-08-08 true
	// card is null: true
	// note is absent: true
	// note: none
	// {"paidOn":"2026-08-08","card":null}
}

func ExampleOf() {
	name := value.Of("Maria")
	fmt.Println(name.Get())
	fmt.Println(name == value.Of("Maria"))
	// Output:
	// Maria true
	// true
}

func ExampleNull() {
	name := value.Null[string]()
	body, _ := json.Marshal(name)
	fmt.Println(string(body))
	// Output: null
}
