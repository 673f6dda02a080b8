module github.com/paghooks/paghooks/internal/readme/commonmark

go 1.26.0

require github.com/yuin/goldmark v1.8.7
