package main

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
)

// Prefixes of ids, by what they are the id of. Other ids are UUIDs.
var idPrefixes = map[string]string{
	"customer":        "cus_",
	"customerAccount": "cus_",
	"event":           "evt_",
	"invoice":         "inv_",
	"payment":         "pay_",
	"paymentLink":     "",
	"subscription":    "sub_",
	"transaction":     "txn_",
}

// Dates and times by their format, see [timeFor].
var timesByFormat = map[string]string{
	"asaas-date":     "2026-08-08",
	"asaas-datetime": "2026-08-08 20:45:13",
	"zelta-time":     "2026-08-08T23:45:13.000Z",
}

// Texts by a name or by its last word.
var textsByName = map[string]string{
	"account":      "123456",
	"accountName":  "Ana Souza",
	"agency":       "0001",
	"city":         "Campinas",
	"cnpj":         "***.456.789-**",
	"code":         "0101",
	"companyName":  "Companhia Exemplo",
	"customerName": "Ana Souza",
	"description":  "Assinatura de agosto",
	"digit":        "7",
	"email":        "ana@example.com",
	"encodedImage": "iVBORw0KGgo=",
	"field":        "03399999900000010008000123456789012345678901",
	"imageBase64":  "iVBORw0KGgo=",
	"ispb":         "00000000",
	"name":         "Exemplo",
	"number":       "1024",
	"operatorName": "Exemplo Celular",
	"ownerName":    "Ana Souza",
	"phone":        "19999990000",
	"phoneNumber":  "19999990000",
	"postalCode":   "13010-111",
	"province":     "Centro",
}

// Numbers by name; the others are small.
var numbersByName = map[string]string{
	"fixedValue":      "64.5",
	"minutesToExpire": "60",
	"netValue":        "127.91",
	"originalValue":   "119.9",
	"totalValue":      "64.5",
	"value":           "129.9",
}

var quoted = regexp.MustCompile(`"([^"]+)"( and more)?`)

// stringFor makes the text of a property. What the description quotes is an
// example of it, or its start: "pay_" and more.
func stringFor(path, format, description string) string {
	if time := timeFor(format, description); time != "" {
		return time
	}
	quote := quoted.FindStringSubmatch(description)
	switch {
	case quote != nil && quote[2] != "":
		return quote[1] + digits(entity(path))
	case quote != nil:
		return quote[1]
	case strings.Contains(description, "UUID"):
		return uuid(entity(path))
	}
	return stringByName(path)
}

// timeFor makes a date or time in the spelling that the description gives to
// this one property; "" if the format is neither.
func timeFor(format, description string) string {
	usual := timesByFormat[format]
	switch {
	case usual == "":
		return ""
	case strings.Contains(description, "delivered as dd/MM/yyyy HH:mm:ss"):
		return "08/08/2026 20:45:13"
	case strings.Contains(description, "delivered as dd/MM/yyyy"):
		return "08/08/2026"
	case strings.Contains(description, "UTC"):
		return "2026-08-08T23:45:13Z"
	}
	return usual
}

func stringByName(path string) string {
	name := lastName(path)
	all := words(name)
	last := strings.ToLower(all[len(all)-1])
	prefix, hasPrefix := idPrefixes[entity(path)]
	switch {
	case textsByName[name] != "":
		return textsByName[name]
	case hasPrefix:
		return prefix + digits(entity(path))
	case last == "id":
		return uuid(entity(path))
	case last == "identifier":
		return "E" + digits(name) + "20260808" + digits(path)[:11]
	case last == "url" || last == "link":
		return "https://example.com/" + name
	case textsByName[last] != "":
		return textsByName[last]
	}
	return strings.ToLower(strings.Join(all, " "))
}

// entity is what an id is the id of: payment for payment.id, paymentId and
// payment.
func entity(path string) string {
	if name := lastName(path); name != "id" {
		return strings.TrimSuffix(name, "Id")
	}
	return lastName(parentOf(path))
}

// lastName is the last name in a path, not the index of an element.
func lastName(path string) string {
	path = strings.TrimSuffix(path, ".0")
	return path[strings.LastIndexByte(path, '.')+1:]
}

// parentOf is the path of the object that has a property.
func parentOf(path string) string {
	return path[:max(0, strings.LastIndexByte(path, '.'))]
}

// numberFor makes a number with no trailing zero, as Asaas spells it. It is
// negative where the description says so: "negative for INTERNAL_TRANSFER_DEBIT".
func numberFor(path, eventType, description string, s *openapi3.Schema) json.Number {
	n := seed(lastName(path))
	text := numbersByName[lastName(path)]
	switch {
	case s.Format == "cents":
		text = fmt.Sprint(1000 + n%9000)
	case typeOf(s) == "integer" && text == "":
		text = fmt.Sprint(1 + n%3)
	case s.Format == "decimal" || text == "":
		text = fmt.Sprintf("%d.5", 1+n%9)
	}
	if strings.Contains(description, "negative for "+eventType) {
		text = "-" + text
	}
	return json.Number(text)
}

// seed is a number that is the same in every run, and different for most names.
func seed(name string) uint64 {
	sum := sha256.Sum256([]byte(name))
	return binary.BigEndian.Uint64(sum[:])
}

func digits(name string) string { return fmt.Sprintf("%012d", seed(name)%1e12) }

func uuid(name string) string {
	b := sha256.Sum256([]byte(name))
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80 // version 4
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:16])
}
