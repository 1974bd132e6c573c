package httpui_test

import (
	"fmt"
	"go/ast"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"text/template/parse"

	"vesti.nixg.ru/httpui"
	"vesti.nixg.ru/httpui/i18n"
	"vesti.nixg.ru/ledger"
	"vesti.nixg.ru/projections/posts"
	"vesti.nixg.ru/projections/search"
	"vesti.nixg.ru/projections/sources"
)

// TestEveryWordIsInEveryLanguage: whatever a template or the code asks the
// catalogue for is there, in each language and of the right kind, and nothing
// is there that nobody asks for.
func TestEveryWordIsInEveryLanguage(t *testing.T) {
	words, err := i18n.Load()
	if err != nil {
		t.Fatal(err)
	}
	asked := templateKeys(t)
	for key := range codeKeys(t, words) {
		asked[key] = asked[key] || false
	}
	for _, key := range setKeys() {
		asked[key] = false
	}
	for _, lang := range words.All() {
		for key, plural := range asked {
			if !lang.Has(key) {
				t.Errorf("%s lacks %q", lang.Tag, key)
				continue
			}
			if _, err := lang.Plural(key, 2); plural && err != nil {
				t.Errorf("%q is asked for with a number: %v", key, err)
			}
		}
		for _, key := range lang.Keys() {
			if _, ok := asked[key]; !ok && !strings.HasPrefix(key, "said.") {
				t.Errorf("%s has %q, which nobody asks for", lang.Tag, key)
			}
		}
	}
}

// setKeys are the names of the values of closed sets, asked for by label.
func setKeys() []string {
	var keys []string
	add := func(set string, values ...any) {
		for _, v := range values {
			name := fmt.Sprint(v)
			if name == "" {
				name = "none"
			}
			keys = append(keys, set+"."+name)
		}
	}
	for _, d := range append(ledger.DefaultDirections(), "") {
		add("direction", d)
	}
	for _, c := range slices.Concat(ledger.RunCauses(), ledger.PostCauses(), []ledger.Cause{""}) {
		add("cause", c)
	}
	for _, c := range ledger.RunCauses() {
		add("why", c)
	}
	for s := range ledger.SourceStatusLen {
		add("condition", ledger.SourceStatus(s))
	}
	add("condition", "disabled", "removed")
	add("status", ledger.StatusNone, ledger.StatusPending, ledger.StatusClassified, ledger.StatusParked)
	add("return", ledger.ReturnReplay, ledger.ReturnEditor, ledger.ReturnRules, ledger.ReturnStage, ledger.ReturnDelay,
		ledger.ReturnShutdown, ledger.ReturnAway, ledger.ReturnRepair)
	add("trigger", ledger.TriggerSchedule, ledger.TriggerManual, ledger.TriggerProbe)
	add("result", sources.ResultOK, sources.ResultNotModified, sources.ResultFailed, sources.ResultThrottled)
	add("account", "no_session", "revoked", "throttled")
	add("crawler", ledger.CrawlerRSS, ledger.CrawlerTelegram)
	add("actor", ledger.ActorCrawler, ledger.ActorWorker, ledger.ActorEditor, ledger.ActorOperator, ledger.ActorLedger)
	add("origin", ledger.TextContent, ledger.TextSummary, ledger.TextPage, ledger.TextTitle, ledger.TextMessage, ledger.TextPreview,
		ledger.TextCorrect, ledger.TextSelector, "")
	add("stage", "keyword", "learned", "llm", "default", "")
	add("sort", posts.ByDate, posts.ByInterest, posts.ByRelevance)
	add("lang", "ru", "en", "uk", "de", "fr", "")
	add("tab", "open", "picked", "rejected", "all")
	add("facet", "direction", "source", "lang", "status", "date")
	add("span", "today", "week", "month")
	add("show", "", "trouble", "dead", "throttled", "new", "disabled", "removed")
	add("media", "photo", "video", "video_note", "animation", "voice", "audio", "document", "sticker", "poll", "location", "contact", "unsupported")
	add("theme", "auto", "light", "dark")
	add("view_name", "queue", "sources", "posts", "search")
	add("note", search.NoteTooLong, search.NoteTooMany, search.NoteNothing, search.NoteBadDate, search.NoteBadValue, search.NoteRelaxed,
		search.NotePartial, search.NoteTimeout, search.NoteRebuilding)
	for month := 1; month <= 12; month++ {
		add("month", month)
	}
	for _, set := range []string{"ago", "in"} {
		add(set, "now", "minutes", "hours", "days")
	}
	return keys
}

// templateKeys are the literal keys of "t" and "tn" in the templates; true for
// those asked for with a number.
func templateKeys(t *testing.T) map[string]bool {
	t.Helper()
	keys := map[string]bool{}
	files, err := filepath.Glob("templates/*.html")
	if err != nil {
		t.Fatal(err)
	}
	parts, err := filepath.Glob("templates/parts/*.html")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range append(files, parts...) {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		tree := parse.New(file)
		tree.Mode = parse.SkipFuncCheck
		trees := map[string]*parse.Tree{}
		if _, err := tree.Parse(string(b), "", "", trees); err != nil {
			t.Fatal(err)
		}
		for _, tr := range trees {
			if tr.Root != nil {
				walk(reflect.ValueOf(tr.Root), func(c *parse.CommandNode) { literalKey(c, keys) })
			}
		}
	}
	if len(keys) < 100 {
		t.Fatalf("only %d keys found in the templates", len(keys))
	}
	return keys
}

func literalKey(c *parse.CommandNode, keys map[string]bool) {
	if len(c.Args) < 2 {
		return
	}
	function, ok := c.Args[0].(*parse.IdentifierNode)
	if !ok || function.Ident != "t" && function.Ident != "tn" {
		return
	}
	if key, ok := c.Args[1].(*parse.StringNode); ok {
		keys[key.Text] = keys[key.Text] || function.Ident == "tn"
	}
}

// walk calls f with every command of a template's tree.
func walk(v reflect.Value, f func(*parse.CommandNode)) {
	switch v.Kind() {
	case reflect.Interface, reflect.Pointer:
		if v.IsNil() {
			return
		}
		if c, ok := reflect.TypeAssert[*parse.CommandNode](v); ok {
			f(c)
		}
		if _, ok := reflect.TypeAssert[*parse.Tree](v); ok {
			return
		}
		walk(v.Elem(), f)
	case reflect.Slice:
		for i := range v.Len() {
			walk(v.Index(i), f)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() || v.Type().Field(i).Anonymous {
				walk(v.Field(i), f)
			}
		}
	default:
	}
}

// codeKeys are the strings of the code that look like a key: they begin with
// one of the catalogue's namespaces.
func codeKeys(t *testing.T, words *i18n.Catalogue) map[string]bool {
	t.Helper()
	spaces := map[string]bool{}
	for _, key := range words.All()[0].Keys() {
		space, _, ok := strings.Cut(key, ".")
		if ok {
			spaces[space] = true
		}
	}
	shape := regexp.MustCompile(`^([a-z]+)\.[a-z_]+$`)
	keys := map[string]bool{}
	httpui.InspectSources(t, "*.go", func(n ast.Node) bool {
		lit, ok := n.(*ast.BasicLit)
		if !ok || lit.Kind != token.STRING {
			return true
		}
		s, err := strconv.Unquote(lit.Value)
		m := shape.FindStringSubmatch(s)
		if err == nil && m != nil && spaces[m[1]] && !strings.HasSuffix(s, ".html") {
			keys[s] = true
		}
		return true
	})
	return keys
}

func TestLanguageAndThemeAreRemembered(t *testing.T) {
	d := newDesk(t, nil)
	_, page := d.getAs(d.client, "/", "Accept-Language", "ru-RU,ru;q=0.9,en;q=0.8")
	wantIn(t, page, `<html lang="ru">`, "Кандидаты", "Постов пока нет")
	page = d.post("/preferences", map[string][]string{"lang": {"ru"}, "next": {"/crawlers"}})
	wantIn(t, page, `<html lang="ru">`, "Готово сегодня")
	page = d.post("/preferences", map[string][]string{"theme": {"dark"}, "next": {"/crawlers?show=dead"}})
	wantIn(t, page, `<html lang="ru" data-theme="dark">`, `value="/crawlers?show=dead"`)
	page = d.post("/preferences", map[string][]string{"theme": {""}})
	wantIn(t, page, `<html lang="ru">`)
	_, page = d.getAs(d.client, "/", "Accept-Language", "en")
	wantIn(t, page, `<html lang="ru">`)
}
