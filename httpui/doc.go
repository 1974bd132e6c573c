// Package httpui is what vesti shows to people and programs over HTTP: pages
// for an editor, a JSON API for what the pages do, and metrics. It reads views
// and changes things only through Commands; both are interfaces that it
// declares and cmd/vesti wires.
package httpui
