// Stands in for a module that the text extractor imports and vesti never calls;
// see dateparser.go.
module github.com/markusmobius/go-dateparser

go 1.26
