package httpui_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// The widths that pages are tried at: a desk and a phone.
const (
	wide   = 1280
	small  = 1000 // a small screen, or half of a large one
	narrow = 390
	slim   = 360
	least  = 320
	tall   = 850
)

// tab is one tab of a real browser.
type tab struct {
	t   *testing.T
	ctx context.Context
}

// browse starts a browser; the test is skipped where there is none.
func browse(t *testing.T) *tab {
	t.Helper()
	if testing.Short() {
		t.Skip("starts a browser")
	}
	binary := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "headless-shell"} {
		if found, err := exec.LookPath(name); err == nil {
			binary = found
			break
		}
	}
	if binary == "" {
		t.Skip("no Chromium on this machine: install one to run the browser's tests (apt install chromium)")
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(binary), chromedp.NoSandbox, chromedp.DisableGPU,
		chromedp.UserDataDir(t.TempDir()), chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true),
		chromedp.Flag("accept-lang", "en"))
	ctx, cancel := chromedp.NewExecAllocator(context.WithoutCancel(t.Context()), options...)
	t.Cleanup(cancel)
	ctx, cancelTab := chromedp.NewContext(ctx)
	t.Cleanup(cancelTab)
	b := &tab{t, ctx}
	if err := chromedp.Do(ctx, chromedp.Navigate("about:blank")); err != nil {
		t.Fatal(err)
	}
	return b
}

// do takes steps, none of which may take long.
func (b *tab) do(steps ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, 30*time.Second)
	defer cancel()
	for i, step := range steps {
		if err := chromedp.Do(ctx, step); err != nil {
			b.t.Fatalf("step %d: %v", i+1, err)
		}
	}
}

func (b *tab) text(selector string) string {
	b.t.Helper()
	return ask(b, chromedp.TextContent(chromedp.CSS(selector)))
}

func ask[T any](b *tab, question chromedp.Action[T]) T {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, 30*time.Second)
	defer cancel()
	answer, err := chromedp.Run(ctx, question)
	if err != nil {
		b.t.Fatal(err)
	}
	return answer
}

// open goes to an address and waits until something is there.
func (b *tab) open(url, selector string) {
	b.t.Helper()
	b.do(chromedp.Navigate(url), chromedp.WaitVisible(chromedp.CSS(selector)))
}

func (b *tab) size(width int64) { b.t.Helper(); b.do(chromedp.EmulateViewport(width, tall)) }

func (b *tab) scheme(name string) {
	b.t.Helper()
	b.do(chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: name}},
		})
		return err
	}))
}

// wider is by how much the page is wider than the window, or the worst of its
// boxes wider than itself.
const wider = `Math.max(document.documentElement.scrollWidth - document.documentElement.clientWidth,
	...[...document.querySelectorAll('.tablebox, .filters')].map(e => e.scrollWidth - e.clientWidth))`

// broken lists the words of table headers that do not fit on a line: a range over
// one word has a box for each line.
const broken = `[...document.querySelectorAll('thead th')].flatMap(th => {
	const words = [], texts = document.createTreeWalker(th, NodeFilter.SHOW_TEXT)
	while (texts.nextNode()) for (const m of texts.currentNode.data.matchAll(/[^\s]+/g)) {
		const r = document.createRange()
		r.setStart(texts.currentNode, m.index); r.setEnd(texts.currentNode, m.index + m[0].length)
		if (!th.closest('.visually-hidden') && new Set([...r.getClientRects()].map(b => Math.round(b.top))).size > 1) words.push(m[0])
	}
	return words
}).join(', ')`

// look checks the page at each width: nothing may be cut off at its side, and no header broken in a word. Where VESTI_SHOTS names a folder it leaves pictures there.
func (b *tab) look(name string) {
	b.t.Helper()
	for _, width := range []int64{least, slim, narrow, small, wide} {
		b.size(width)
		if over := ask(b, chromedp.Evaluate[int64](wider)); over > 0 {
			b.t.Errorf("%s at %d: %d pixels wider than there is room", name, width, over)
		}
		if words := ask(b, chromedp.Evaluate[string](broken)); words != "" && width >= small {
			b.t.Errorf("%s at %d: broken headers %s", name, width, words)
		}
		for _, scheme := range []string{"dark", "light"} {
			dir := os.Getenv("VESTI_SHOTS")
			if dir == "" || width != narrow && width != wide {
				continue
			}
			b.scheme(scheme)
			png := ask(b, chromedp.FullScreenshot(100))
			file := strings.Join([]string{name, map[int64]string{narrow: "phone", wide: "desk"}[width], scheme}, "-") + ".png"
			if err := os.WriteFile(filepath.Join(dir, file), png, 0o600); err != nil {
				b.t.Fatal(err)
			}
		}
	}
}

// TestEditorInABrowser is an editor's morning: log in, search, pick with a key,
// read, reject, take it back, and look at the sources.
func TestEditorInABrowser(t *testing.T) {
	b := browse(t)
	d := newDesk(t, demoSources())
	d.fill()
	at := func(path string) string { return d.http.URL + path }
	css := func(s string) chromedp.CSS { return chromedp.CSS(s) }

	b.size(wide)
	b.open(at("/?q=kernel"), "#password")
	b.look("login")
	b.do(chromedp.SendKeys(css("#password"), d.password+"\r"), chromedp.WaitVisible(css("#posts")))
	if title := b.text("#posts .post h2"); !strings.Contains(title, "Kernel 6.20") {
		t.Errorf("first hit is %q", title)
	}
	b.look("search")
	b.do(chromedp.KeyEvent("j"), chromedp.KeyEvent("p"), chromedp.WaitReady(css(`#posts .post.current[data-verdict="picked"]`)))
	if live := b.text("#live"); live != "Picked" {
		t.Errorf("announced %q", live)
	}
	b.look("picked")
	d.settle()
	wantIn(t, d.get("/?tab=picked"), "Kernel 6.20")

	b.do(chromedp.KeyEvent("o"), chromedp.WaitVisible(css("#review")))
	b.look("post")
	b.do(chromedp.KeyEvent("r"), chromedp.WaitReady(css(`#review[data-verdict="rejected"]`)))
	b.do(chromedp.KeyEvent("u"), chromedp.WaitReady(css(`#review[data-verdict=""]`)))

	post := ask(b, chromedp.Evaluate[string]("location.pathname"))
	pages := []struct{ name, path, there string }{
		{"inbox", "/", "#posts"},
		{"reading", post, "#review"},
		{"crawlers", "/crawlers", "table.sources"},
		{"source", "/crawlers/broken", "table"},
		{"account", "/account", "#new"},
		{"help", "/help", "dl.facts"},
		{"empty", "/?q=nonesuch", ".empty"},
		{"notfound", "/nowhere", ".empty"},
	}
	for _, page := range pages {
		b.open(at(page.path), page.there)
		b.look(page.name)
	}
	b.do(chromedp.Click(css(`button[name="lang"][value="ru"]`)), chromedp.WaitReady(css(`html[lang="ru"]`)))
	for _, page := range pages {
		b.open(at(page.path), page.there)
		b.look(page.name + "-ru")
	}
	b.open(at("/"), "#posts")
	b.do(chromedp.KeyEvent("?"), chromedp.WaitVisible(css("#keys")))
	b.look("keys")
}
