package classify

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"vesti.nixg.ru/ledger"
)

const (
	// shortText is the number of bytes from which a text needs no fuller one.
	shortText = 1000
	// articleTimeout bounds the fetching of an article: a worker waits for it.
	articleTimeout = 20 * time.Second
	// maxArticles is how many are kept for the stage after the one that fetched
	// them.
	maxArticles = 128
	// longArticle is the number of bytes from which a text is not kept: it is cheaper
	// to fetch it again.
	longArticle = 64 << 10
)

func summaryOnly(item *ledger.Item) bool {
	return (item.TextFrom == ledger.TextSummary || item.TextFrom == ledger.TextTitle) && len(item.Text) < shortText
}

// fullText returns the text of a post's article, "" where there is none to be
// had: then the summary is judged, and the post loses no attempt.
func (c *Cascade) fullText(ctx context.Context, claim ledger.Claim) string {
	key := articleKey{claim.Post, claim.Revision}
	if text, ok := c.articles.get(key); ok {
		return text
	}
	limited, cancel := context.WithTimeout(ctx, articleTimeout)
	defer cancel()
	text, err := c.o.FullText(limited, claim.Item)
	if err != nil {
		if ctx.Err() == nil {
			c.o.Logger.Info("judged by the summary: no full text", slog.Uint64("post", uint64(claim.Post)), slog.Any("error", err))
		}
		return ""
	}
	if c.o.LLM != nil && claim.Stage == ledger.StageFirst && len(text) < longArticle {
		c.articles.put(key, text)
	}
	return text
}

// articles keeps the texts that the first stage has fetched until the language
// model's turn comes, so that a page is fetched once. It forgets all when it is
// full: a page may be fetched again.
type articles struct {
	mu    sync.Mutex
	texts map[articleKey]string
}

type articleKey struct {
	post     ledger.PostNum
	revision int
}

func (a *articles) put(key articleKey, text string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.texts == nil || len(a.texts) >= maxArticles {
		a.texts = make(map[articleKey]string)
	}
	a.texts[key] = text
}

func (a *articles) get(key articleKey) (string, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	text, ok := a.texts[key]
	return text, ok
}
