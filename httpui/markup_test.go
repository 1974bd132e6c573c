package httpui_test

import (
	"net/http"
	"strings"
	"testing"

	"golang.org/x/net/html"
)

// TestPagesAreAccessible checks what can be checked by a program, on every page
// in every language.
func TestPagesAreAccessible(t *testing.T) {
	d := newDesk(t, demoSources())
	d.fill()
	post := d.get("/")
	_, rest, _ := strings.Cut(post, `href="/posts/`)
	id, _, _ := strings.Cut(rest, `"`)
	for _, lang := range []string{"en", "ru"} {
		for _, path := range append(pagePaths(), "/posts/"+id, "/nowhere", "/crawlers?show=dead", "/?q=nonesuch", "/?page=2") {
			_, page := d.getAs(d.client, path, "Accept-Language", lang)
			accessible(t, lang+" "+path, page)
		}
		_, page := d.getAs(newClient(t), "/login", "Accept-Language", lang)
		accessible(t, lang+" /login", page)
		_, page = d.postAs(d.client, "/account/tokens", map[string][]string{"name": {"x"}}, "Accept-Language", lang)
		accessible(t, lang+" new token", page)
	}
}

func accessible(t *testing.T, name, page string) {
	t.Helper()
	doc, err := html.Parse(strings.NewReader(page))
	if err != nil {
		t.Fatal(err)
	}
	count, ids, labelled := map[string]int{}, map[string]bool{}, map[string]bool{}
	for n := range doc.Descendants() {
		if n.Type != html.ElementNode {
			continue
		}
		count[n.Data]++
		if id := attribute(n, "id"); id != "" {
			if ids[id] {
				t.Errorf("%s: two elements have the id %q", name, id)
			}
			ids[id] = true
		}
		if n.Data == "label" {
			labelled[attribute(n, "for")] = true
		}
		if n.Data == "html" && !strings.HasPrefix(name, attribute(n, "lang")) {
			t.Errorf("%s: lang=%q", name, attribute(n, "lang"))
		}
	}
	for _, one := range []string{"h1", "main", "title", "header", "footer"} {
		if count[one] != 1 {
			t.Errorf("%s: %d <%s>", name, count[one], one)
		}
	}
	for n := range doc.Descendants() {
		if n.Type != html.ElementNode {
			continue
		}
		switch n.Data {
		case "input", "select", "textarea":
			if attribute(n, "type") != "hidden" && attribute(n, "aria-hidden") == "" && !labelled[attribute(n, "id")] {
				t.Errorf("%s: <%s name=%q> has no label", name, n.Data, attribute(n, "name"))
			}
		case "button", "a", "th", "summary", "h1", "h2", "h3", "legend", "dt":
			if strings.TrimSpace(textOf(n)) == "" && attribute(n, "aria-label") == "" {
				t.Errorf("%s: <%s> says nothing", name, n.Data)
			}
		case "nav", "section", "aside":
			if n.Data == "nav" && attribute(n, "aria-label") == "" {
				t.Errorf("%s: a <nav> without a name", name)
			}
		case "meter":
			if attribute(n, "aria-label") == "" {
				t.Errorf("%s: a <meter> without a name", name)
			}
		case "form":
			if action := attribute(n, "action"); attribute(n, "method") == "post" && action == "" && !hasFormaction(n) {
				t.Errorf("%s: a form that leads nowhere", name)
			}
		}
		for _, ref := range []string{"aria-labelledby", "aria-describedby"} {
			if id := attribute(n, ref); id != "" && !ids[id] {
				t.Errorf("%s: %s=%q is nowhere", name, ref, id)
			}
		}
	}
}

func hasFormaction(form *html.Node) bool {
	for n := range form.Descendants() {
		if n.Type == html.ElementNode && n.Data == "button" && attribute(n, "formaction") == "" {
			return false
		}
	}
	return true
}

func textOf(n *html.Node) string {
	var b strings.Builder
	for c := range n.Descendants() {
		if c.Type == html.TextNode {
			b.WriteString(c.Data)
		}
	}
	return b.String()
}

func TestErrorPages(t *testing.T) {
	d := newDesk(t, demoSources())
	for _, tt := range []struct {
		method, path string
		status       int
		says         string
	}{
		{http.MethodGet, "/nowhere", http.StatusNotFound, "There is nothing at this address"},
		{http.MethodGet, "/posts/ffffffff", http.StatusNotFound, "There is nothing at this address"},
		{http.MethodPost, "/crawlers", http.StatusMethodNotAllowed, "This address does not take that method"},
		{http.MethodDelete, "/", http.StatusMethodNotAllowed, "This address does not take that method"},
		{http.MethodGet, "/assets/0/app.css", http.StatusNotFound, "There is nothing at this address"},
	} {
		res, page := d.send(d.client, tt.method, tt.path, nil)
		if res.StatusCode != tt.status {
			t.Errorf("%s %s: %s, want %d", tt.method, tt.path, res.Status, tt.status)
		}
		wantIn(t, page, "<!doctype html>", tt.says, "To the candidates")
		res, page = d.send(d.client, tt.method, tt.path, nil, "Accept", "application/json")
		if res.StatusCode != tt.status || !strings.HasPrefix(page, `{"error":"`) {
			t.Errorf("%s %s as JSON: %s %s", tt.method, tt.path, res.Status, page)
		}
	}
	big := strings.NewReader("note=" + strings.Repeat("x", 1<<20))
	res, page := d.send(d.client, http.MethodPost, "/preferences", big, "Content-Type", "application/x-www-form-urlencoded")
	if res.StatusCode != http.StatusRequestEntityTooLarge {
		t.Errorf("1 MiB of form: %s", res.Status)
	}
	wantIn(t, page, "The request is too large")
	res, _ = d.send(d.client, http.MethodPost, "/preferences", strings.NewReader("%zz=1"), "Content-Type", "application/x-www-form-urlencoded")
	if res.StatusCode != http.StatusBadRequest {
		t.Errorf("broken form: %s", res.Status)
	}
	if err := d.log.Close(); err != nil {
		t.Fatal(err)
	}
	res, page = d.getAs(d.client, "/")
	if res.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("closed store: %s", res.Status)
	}
	wantIn(t, page, "vesti is stopping")
}
