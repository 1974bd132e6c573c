package page_test

import (
	"strings"
	"testing"
	"time"

	"vesti.nixg.ru/crawl/page"
)

// A long page, made to be slow, is read or refused in a time that one of the
// extraction's slots can be held for.
func TestHostilePages(t *testing.T) {
	const size, most = hostileSize, 30 * time.Second
	body := "<p>" + strings.Repeat("A sentence with commas, names, and numbers. ", 20) + "</p>"
	for name, piece := range map[string]string{
		"nested blocks":     "<div>",
		"blank blocks":      "<div> ",
		"nested quotes":     "<blockquote><p>x",
		"nested inline":     "<b><i><u>x",
		"formatting":        "<p><b><i><font>x",
		"links":             `<a href="/x">x`,
		"link blocks":       `<div><a href="/x"> </a>`,
		"tables":            "<table><tr><td>x",
		"misplaced":         "<table><p>x",
		"lists":             "<ul><li>x",
		"selects":           "<select><option>x",
		"svg":               "<svg><g><desc>x",
		"templates":         "<template><div>x",
		"attributes":        `<p class="a b c d" id="x" style="y" data-z="w">x</p>`,
		"paragraphs":        "<p>Some words in it.</p>",
		"long words":        strings.Repeat("x", 1000) + " ",
		"one attribute":     `<p title="` + strings.Repeat("x", 1<<20) + `">x</p>`,
		"entities":          "&amp;&nbsp;&#128512;",
		"comments":          "<!-- x -->",
		"scripts":           "<script>x</script>",
		"breaks":            "<br>x",
		"end tags":          "</p></b></a>",
		"nested forms":      "<form><input><button>x",
		"headings":          "<h1>x",
		"definition lists":  "<dl><dt>x<dd>y",
		"adoption":          "<a><b><div></a></b>",
		"open formatting":   "<b class=x>",
		"different formats": "<b><big><code><em><font><i><nobr><s><small><strike><strong><tt><u>",
	} {
		t.Run(name, func(t *testing.T) {
			doc := "<html><body><article>" + body + strings.Repeat(piece, size/len(piece)) + body
			start := time.Now()
			done := make(chan error, 1)
			go func() {
				_, err := page.Extract(page.Input{Body: []byte(doc), ContentType: "text/html; charset=utf-8", URL: "https://a.example/x"})
				done <- err
			}()
			select {
			case err := <-done:
				t.Log(time.Since(start), err)
			case <-time.After(most):
				t.Errorf("more than %v", most)
			}
		})
	}
}
