package page_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"

	"vesti.nixg.ru/crawl"
	"vesti.nixg.ru/crawl/fetch"
	"vesti.nixg.ru/crawl/page"
	"vesti.nixg.ru/ledger"
)

const pageURL = "https://news.example.org/2025/tunnel?utm_source=rss"

// document is an article among what stands around one.
func document(head, extra string) string {
	var b strings.Builder
	b.WriteString(`<!DOCTYPE html><html><head><title>Туннель открыт</title>` + head + `</head><body><nav><a href="/">Главная</a> <a href="/sport">Спорт</a></nav><article><h1>Туннель открыт</h1>`)
	for _, p := range []string{
		"Новый туннель под рекой открыли для движения в понедельник утром, сообщили в городской администрации.",
		"Строительство продолжалось четыре года и обошлось дешевле, чем предполагалось в начале работ.",
		"По туннелю смогут проезжать до сорока тысяч автомобилей в сутки, а поезда пойдут через каждые десять минут.",
		"Ёмкость восточного портала позволит разгрузить старый мост, который закроют на ремонт летом.",
	} {
		b.WriteString("<p>" + p + "</p>")
	}
	b.WriteString(extra + `</article><footer>Все права защищены</footer></body></html>`)
	return b.String()
}

func TestExtractDecodes(t *testing.T) {
	for name, c := range map[string]struct {
		head        string
		enc         encoding.Encoding
		contentType string
	}{
		"utf-8":                      {contentType: "text/html; charset=utf-8"},
		"utf-8 without a word":       {contentType: "text/html"},
		"windows-1251 by header":     {enc: charmap.Windows1251, contentType: "text/html; charset=windows-1251"},
		"windows-1251 by meta":       {head: `<meta charset="windows-1251">`, enc: charmap.Windows1251, contentType: "text/html"},
		"koi8-r by meta":             {head: `<meta http-equiv="Content-Type" content="text/html; charset=koi8-r">`, enc: charmap.KOI8R, contentType: "text/html"},
		"windows-1251, header utf-8": {head: `<meta charset="windows-1251">`, enc: charmap.Windows1251, contentType: "text/html; charset=utf-8"},
		"windows-1251, not declared": {enc: charmap.Windows1251, contentType: "text/html"},
		"utf-8, header windows-1251": {contentType: "text/html; charset=windows-1251"},
		"no header, bytes of HTML":   {contentType: ""},
	} {
		t.Run(name, func(t *testing.T) {
			body := []byte(document(c.head, ""))
			if c.enc != nil {
				var err error
				if body, err = c.enc.NewEncoder().Bytes(body); err != nil {
					t.Fatal(err)
				}
			}
			p, err := page.Extract(page.Input{Body: body, ContentType: c.contentType, URL: pageURL})
			if err != nil {
				t.Fatal(err)
			}
			for _, want := range []string{"Новый туннель под рекой", "Ёмкость восточного портала", "\n"} {
				if !strings.Contains(p.Text, want) {
					t.Errorf("text %q, want it to contain %q", p.Text, want)
				}
			}
			for _, not := range []string{"Спорт", "Все права", "\uFFFD"} {
				if strings.Contains(p.Text, not) {
					t.Errorf("text %q contains %q", p.Text, not)
				}
			}
			if p.From != ledger.TextPage || p.Canonical != pageURL {
				t.Errorf("from %s, canonical %s", p.From, p.Canonical)
			}
		})
	}
}

func TestExtractLeavesOutWhatLeadsAway(t *testing.T) {
	extra := `<p>Читайте также: другие новости о мостах города</p><p><a href="/x">Мост закроют на ремонт этим летом</a></p>` +
		`<p>Проезд по туннелю будет <a href="/free">бесплатным</a> для всех жителей города до конца текущего года.</p><p>Подписывайтесь на наш канал</p>`
	p, err := page.Extract(page.Input{Body: []byte(document("", extra)), ContentType: "text/html", URL: pageURL})
	if err != nil {
		t.Fatal(err)
	}
	for _, not := range []string{"Читайте также", "Мост закроют", "Подписывайтесь"} {
		if strings.Contains(p.Text, not) {
			t.Errorf("text %q contains %q", p.Text, not)
		}
	}
	if !strings.Contains(p.Text, "будет бесплатным для всех") {
		t.Errorf("text %q lost a sentence with a link", p.Text)
	}
}

func TestCanonical(t *testing.T) {
	for name, c := range map[string]struct{ url, href, want string }{
		"same host":        {pageURL, "https://news.example.org/2025/tunnel", "https://news.example.org/2025/tunnel"},
		"relative":         {pageURL, "/2025/tunnel", "https://news.example.org/2025/tunnel"},
		"with www":         {pageURL, "https://www.news.example.org/2025/tunnel", "https://www.news.example.org/2025/tunnel"},
		"relative to base": {pageURL, `tunnel"><base href="/2024/`, "https://news.example.org/2024/tunnel"},
		"another host":     {pageURL, "https://evil.example.com/2025/tunnel", pageURL},
		"the front page":   {pageURL, "https://news.example.org/", pageURL},
		"no web address":   {pageURL, "javascript:alert(1)", pageURL},
		"empty":            {pageURL, "", pageURL},
		"out of AMP cache": {"https://news-example-org.cdn.ampproject.org/c/s/news.example.org/a", "https://news.example.org/a", "https://news.example.org/a"},
	} {
		t.Run(name, func(t *testing.T) {
			body := document(`<link rel="canonical" href="`+c.href+`">`, "")
			p, err := page.Extract(page.Input{Body: []byte(body), ContentType: "text/html", URL: c.url})
			if err != nil {
				t.Fatal(err)
			}
			if p.Canonical != c.want {
				t.Errorf("%q, want %q", p.Canonical, c.want)
			}
		})
	}
}

func TestSelector(t *testing.T) {
	extra := `<div class="box">One <div class="box">inner</div></div><div class="box">Two</div>`
	for selector, want := range map[string]string{
		".box":       "One\ninner\n\nTwo",
		".box, h1":   "Туннель открыт\n\nOne\ninner\n\nTwo",
		".nothing":   "Новый туннель",
		"[[ invalid": "Новый туннель",
	} {
		p, err := page.Extract(page.Input{Body: []byte(document("", extra)), ContentType: "text/html", URL: pageURL, Selector: selector})
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(p.Text, want) && (p.From == ledger.TextSelector || !strings.Contains(p.Text, want)) {
			t.Errorf("%s: from %s %q, want %q", selector, p.From, p.Text, want)
		}
	}
}

func TestWhatIsNoArticle(t *testing.T) {
	deep := strings.Repeat("<div>", 5000) + "x" + strings.Repeat("</div>", 5000)
	for name, c := range map[string]struct {
		in   page.Input
		want error
	}{
		"pdf":              {page.Input{Body: []byte("%PDF-1.7"), ContentType: "application/pdf"}, page.ErrNotPage},
		"pdf, unlabelled":  {page.Input{Body: []byte("%PDF-1.7\n")}, page.ErrNotPage},
		"picture":          {page.Input{Body: []byte("<html>"), ContentType: "image/png"}, page.ErrNotPage},
		"json":             {page.Input{Body: []byte(`{"a":1}`), ContentType: "application/json"}, page.ErrNotPage},
		"nothing":          {page.Input{Body: []byte("<html><body></body></html>"), ContentType: "text/html"}, page.ErrNoText},
		"only noscript":    {page.Input{Body: []byte("<html><body><div id=app></div><noscript>Enable scripts to run this.</noscript></body></html>"), ContentType: "text/html"}, page.ErrNoText},
		"nested too deep":  {page.Input{Body: []byte(deep), ContentType: "text/html"}, page.ErrSlow},
		"too many of them": {page.Input{Body: []byte(strings.Repeat("<i></i>", 310_000)), ContentType: "text/html"}, page.ErrSlow},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := page.Extract(c.in); !errors.Is(err, c.want) {
				t.Errorf("error %v, want %v", err, c.want)
			}
		})
	}
}

// answer is a server that gives one answer.
type answer struct {
	body string
	wait func(context.Context)
}

func (a answer) Get(ctx context.Context, r fetch.Request) (*fetch.Response, error) {
	if a.wait != nil {
		a.wait(ctx)
	}
	return &fetch.Response{
		Status: http.StatusOK, Header: http.Header{"Content-Type": {"text/html; charset=utf-8"}},
		Body: []byte(a.body), FinalURL: r.URL,
	}, ctx.Err()
}

func TestGet(t *testing.T) {
	e := page.New(page.Options{Client: answer{body: document("", "")}})
	defer e.Close()
	p, err := e.Get(t.Context(), crawl.Source{}, pageURL)
	if err != nil || p.URL != pageURL || !strings.Contains(p.Text, "Новый туннель") {
		t.Errorf("%+v, %v", p, err)
	}
}

// TestGetStopsWithItsContext: a fetch that hangs ends with its caller.
func TestGetStopsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := page.New(page.Options{Client: answer{body: document("", ""), wait: func(ctx context.Context) { <-ctx.Done() }}})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := e.Get(ctx, crawl.Source{}, pageURL); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v", err)
		}
		e.Close()
	})
}

// A page that waits behind a slow one has nothing wrong with it.
func TestBusyIsNotSlow(t *testing.T) {
	long := document("", strings.Repeat("<p>One of very many paragraphs, with a comma, and <b>bold</b> words.</p>", 1500))
	e := page.New(page.Options{Client: answer{body: long}, Timeout: time.Millisecond, Parallel: 1})
	defer e.Close()
	for i, want := range []error{page.ErrSlow, page.ErrBusy} {
		if _, err := e.Get(t.Context(), crawl.Source{}, pageURL); !errors.Is(err, want) {
			t.Errorf("page %d: error %v, want %v", i, err, want)
		}
	}
}
