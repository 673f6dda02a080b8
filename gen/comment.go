package main

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

const commentWidth = 77

// about makes a type's comment of its description: "A charge." becomes
// "Payment is a charge."
func about(name, description string) string {
	return comment(name + " is " + clause(description))
}

// clause makes the middle of a sentence of a text that starts with an article.
func clause(text string) string {
	first, size := utf8.DecodeRuneInString(text)
	return string(unicode.ToLower(first)) + text[size:]
}

// comment makes a Go comment of a text. Empty lines part its paragraphs.
func comment(text string) string {
	var lines []string
	for i, paragraph := range strings.Split(strings.TrimSpace(text), "\n\n") {
		if i > 0 {
			lines = append(lines, "//")
		}
		lines = append(lines, wrap(strings.Fields(paragraph))...)
	}
	return strings.Join(lines, "\n")
}

func wrap(words []string) []string {
	var lines []string
	current := "//"
	for _, word := range words {
		if utf8.RuneCountInString(current)+1+utf8.RuneCountInString(word) > commentWidth && current != "//" {
			lines = append(lines, current)
			current = "//"
		}
		current += " " + word
	}
	return append(lines, current)
}
