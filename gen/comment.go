package main

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

const commentWidth = 77

// about makes a type's comment of its description: "A charge." becomes
// "Payment is a charge." A text that is no such sentence stands as it is.
func about(name, description string) string {
	switch {
	case isClause(description):
		return comment(name + " is " + clause(description))
	case strings.TrimSpace(description) == "":
		return comment(name + " is a part of an event.")
	}
	return comment(name + ": " + description)
}

// when makes the comment of the method that registers a handler.
func when(name, summary string) string {
	switch {
	case isClause(summary):
		return comment(name + " runs h when " + clause(summary))
	case strings.TrimSpace(summary) == "":
		return comment(name + " runs h for the event type that it is named after.")
	}
	return comment(name + " runs h: " + summary)
}

// isClause reports whether a text can stand in the middle of a sentence.
func isClause(text string) bool {
	first, _, more := strings.Cut(text, " ")
	return more && (first == "A" || first == "An" || first == "The")
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
