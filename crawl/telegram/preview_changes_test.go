package telegram_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"vesti.nixg.ru/crawl"
	"vesti.nixg.ru/crawl/telegram"
	"vesti.nixg.ru/ledger"
)

func TestEditsAreRevisions(t *testing.T) {
	w := newWorld(t)
	c := channel(1, 5)
	w.server.Set("port_example", c)
	w.mustCrawl()
	c.Messages[2].Text, c.Messages[2].Edited = "Совсем другой текст о погрузке угля в порту", true
	c.Messages[3].Edited = true // a reaction counts as an edit for Telegram
	w.server.Set("port_example", c)
	if rep := w.mustCrawl(); rep.Revised != 1 || rep.New != 0 {
		t.Errorf("report %+v, want one revision", rep)
	}
	if p := w.post(3); p.Item.Text != c.Messages[2].Text || p.Revisions != 1 {
		t.Errorf("post 3: %q, %d revisions", p.Item.Text, p.Revisions)
	}
	if rep := w.mustCrawl(); rep.Revised != 0 {
		t.Errorf("the same again: %+v", rep)
	}
}

func TestEditsAreFoundInTheWholeWindow(t *testing.T) {
	w := newWorld(t)
	c := channel(1, 60)
	w.server.Set("port_example", c)
	w.mustCrawl()
	c.Messages[4].Text = "Новый текст пятого сообщения об отмене рейса"
	w.server.Set("port_example", c)
	w.now = w.now.Add(time.Hour)
	if rep := w.mustCrawl(); rep.Revised != 0 {
		t.Errorf("after an hour, on page three: %+v", rep)
	}
	w.now = w.now.Add(6 * time.Hour)
	if rep := w.mustCrawl(); rep.Revised != 1 {
		t.Errorf("when the window is due: %+v", rep)
	}
}

func TestDeletionsAreMarked(t *testing.T) {
	w := newWorld(t)
	c := channel(1, 10)
	w.server.Set("port_example", c)
	w.mustCrawl()
	c.Messages = slices.Delete(slices.Clone(c.Messages), 4, 5)
	w.server.Set("port_example", c)
	w.mustCrawl()
	if w.post(5).State.Removed {
		t.Error("marked after one look: a page may show too little")
	}
	w.mustCrawl()
	if !w.post(5).State.Removed || w.post(4).State.Removed || w.post(6).State.Removed {
		t.Error("message 5 alone is deleted")
	}
	// Half the page missing is no editing of a channel.
	c.Messages = c.Messages[5:]
	w.server.Set("port_example", c)
	for range 3 {
		w.mustCrawl()
	}
	if w.post(3).State.Removed {
		t.Error("marked although the page shows too little")
	}
}

func TestRoundedCountsNeverDrop(t *testing.T) {
	w := newWorld(t)
	c := channel(1, 2)
	set := func(views, reactions int64) {
		c.Messages[0].Views, c.Messages[0].Reactions = &views, &reactions
		w.server.Set("port_example", c)
		w.mustCrawl()
	}
	set(999, 5)
	set(1004, 6)        // "1K": less than was known, within rounding
	set(1500, 7)        // "1.5K": by half
	set(1600, 7)        // not notable
	set(8_671_234, 120) // "8.67M"
	set(8_670_001, 100) // fell
	var got []string
	for _, e := range w.events(1) {
		if m, ok := e.Payload.(ledger.PostMeasured); ok {
			got = append(got, fmt.Sprintf("%d/%d/%v", *m.Measures.Views, *m.Measures.Reactions, m.Measures.Rounded))
		}
	}
	if want := []string{"1500/7/true", "8670000/120/true"}; !slices.Equal(got, want) {
		t.Errorf("measured %v, want %v", got, want)
	}
}

func TestAlbumIsOnePost(t *testing.T) {
	w := newWorld(t)
	c := channel(1, 3)
	album := message(4)
	album.Members, album.Media = []int{4, 5, 6}, []string{telegram.MediaPhoto, telegram.MediaPhoto, telegram.MediaVideo}
	c.Messages = append(c.Messages, album, message(7))
	w.server.Set("port_example", c)
	if rep := w.mustCrawl(); rep.New != 5 || rep.Cursor != "2000000001/7" {
		t.Errorf("report %+v, want 5 new", rep)
	}
	// Its first picture is deleted: the block goes by the next id now.
	c.Messages[3].ID, c.Messages[3].Members, c.Messages[3].Media = 5, []int{5, 6}, album.Media[1:]
	w.server.Set("port_example", c)
	for range 3 {
		if rep := w.mustCrawl(); rep.New+rep.Revised != 0 {
			t.Errorf("after its first picture was deleted: %+v", rep)
		}
	}
	if w.post(4).State.Removed {
		t.Error("the album is marked as removed")
	}
}

// An album whose last picture comes late is still one post, and its progress
// goes on behind that picture.
func TestAlbumThatGrows(t *testing.T) {
	w := newWorld(t)
	c := channel(1, 3)
	album := message(4)
	album.Members, album.Media = []int{4, 5}, []string{telegram.MediaPhoto, telegram.MediaPhoto}
	c.Messages = append(c.Messages, album)
	w.server.Set("port_example", c)
	w.mustCrawl()
	c.Messages[3].Members, c.Messages[3].Media = []int{4, 5, 6}, slices.Repeat(album.Media[:1], 3)
	w.server.Set("port_example", c)
	if rep := w.mustCrawl(); rep.New != 0 || rep.Cursor != "2000000001/6" {
		t.Errorf("report %+v, want progress to 6 and nothing new", rep)
	}
	w.wantIDs(span(1, 4))
}

// Where Telegram renames the class of texts, posts keep theirs.
func TestChangedMarkupEmptiesNothing(t *testing.T) {
	var rename atomic.Bool
	w := newWorld(t)
	inner := w.server
	outer := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		rec := httptest.NewRecorder()
		inner.ServeHTTP(rec, r)
		page := rec.Body.String()
		if rename.Load() {
			page = strings.ReplaceAll(page, "js-message_text", "js-text")
		}
		io.WriteString(rw, page)
	}))
	t.Cleanup(outer.Close)
	w.open(func(o *telegram.Options) { o.PreviewURL = outer.URL })
	for _, messages := range []int{3, 30} { // too few to tell, and enough
		inner.Set("port_example", channel(1, messages))
		rename.Store(false)
		w.mustCrawl()
		rename.Store(true)
		rep, err := w.crawl()
		var failed *crawl.Error
		switch {
		case messages == 3 && err != nil:
			t.Errorf("3 messages: %v", err)
		case messages == 30 && (!errors.As(err, &failed) || failed.Cause != ledger.CauseParse || !strings.Contains(failed.Message, "changed its markup")):
			t.Errorf("30 messages: error %v, want cause parse", err)
		}
		if rep.Revised+rep.New != 0 || w.post(2).Item.Text == "" {
			t.Errorf("%d messages: %+v", messages, rep)
		}
	}
}

// A server that takes no notice of ?before= must not make the crawler believe
// that there is nothing before.
func TestPagingThatIsIgnored(t *testing.T) {
	w := newWorld(t)
	inner := w.server
	outer := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		r.URL.RawQuery = ""
		inner.ServeHTTP(rw, r)
	}))
	t.Cleanup(outer.Close)
	inner.Set("port_example", channel(1, 15))
	w.mustCrawl()
	w.open(func(o *telegram.Options) { o.PreviewURL = outer.URL })
	for _, messages := range []int{60, 900} { // a gap to walk through, and one to climb
		inner.Set("port_example", channel(1, messages))
		_, err := w.crawl()
		var failed *crawl.Error
		if !errors.As(err, &failed) || failed.Cause != ledger.CauseParse {
			t.Errorf("%d messages: error %v, want cause parse", messages, err)
		}
		w.wantIDs(span(1, 15))
	}
	w.open()
	w.mustCrawl()
	w.wantIDs(span(1, 900))
}

func TestForwardsNameTheirOrigin(t *testing.T) {
	w := newWorld(t)
	c := channel(1, 2)
	c.Messages[1].Forward = "https://t.me/Other_Channel/77"
	w.server.Set("port_example", c)
	w.mustCrawl()
	if it := w.post(2).Item; it.ForwardOf != "https://t.me/Other_Channel/77" || it.CanonicalURL != "https://t.me/other_channel/77" {
		t.Errorf("forward of %q, canonical %q", it.ForwardOf, it.CanonicalURL)
	}
}
