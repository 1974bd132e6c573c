package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	"vesti.nixg.ru/crawl"
	"vesti.nixg.ru/crawl/feed"
	"vesti.nixg.ru/crawl/fetch"
	"vesti.nixg.ru/crawl/page"
	"vesti.nixg.ru/ledger"
)

func (a *App) buildCrawler(ctx context.Context, tolerate func(error)) error {
	var proxy *url.URL
	if a.cfg.Proxy != "" {
		var err error
		if proxy, err = url.Parse(a.cfg.Proxy); err != nil || proxy.Host == "" {
			return usagef("setting crawl.proxy: want a URL such as http://127.0.0.1:3128 or socks5://127.0.0.1:1080")
		}
	}
	client := fetch.New(fetch.Options{
		UserAgent:    a.cfg.UserAgent,
		Proxy:        proxy,
		MaxFeedBytes: int64(a.cfg.FeedBytes),
		MaxPageBytes: int64(a.cfg.PageBytes),
		Timeout:      a.cfg.FetchTimeout,
		Registerer:   a.registry,
	})
	logger := a.logger.With("part", "crawl")
	telegram, err := a.newTelegram(client, proxy)
	if err != nil {
		return err
	}
	a.pages = page.New(page.Options{Client: client})
	a.drops = crawl.NewDrops(a.log.Store("drops"), time.Now)
	a.crawler = crawl.New(crawl.Options{
		Log: a.log,
		Kinds: map[ledger.Crawler]crawl.Kind{
			ledger.CrawlerRSS:      feed.New(feed.Options{Client: client, Pages: a.pages, Logger: logger}),
			ledger.CrawlerTelegram: telegram,
		},
		Drops: a.drops,
		Pause: client.Pause,
		Intervals: map[ledger.Priority]time.Duration{
			ledger.P0: a.cfg.IntervalP0, ledger.P1: a.cfg.IntervalP1, ledger.P2: a.cfg.IntervalP2,
		},
		Concurrency: a.cfg.CrawlConcurrency,
		Logger:      logger,
		Registerer:  a.registry,
	})
	a.client = client
	if _, err = a.reloadSources(ctx); tolerate != nil && errors.Is(err, errUsage) {
		tolerate(err)
		return nil
	}
	return err
}

// readSources reads the registry's file, without taking it over.
func (a *App) readSources() ([]crawl.Source, error) {
	list, err := crawl.LoadSources(a.cfg.Sources, a.cfg.Directions)
	if err != nil {
		return nil, usageError{err.Error()} // the file is not there, cannot be read, or has mistakes
	}
	if a.demo != nil {
		list = append(list, crawl.Source{
			Slug: demoSlug, Name: "vesti demo", FeedURL: a.demo.url(), Crawler: ledger.CrawlerRSS, Enabled: true,
			Direction: a.cfg.Directions[0], MaxItems: crawl.DefaultMaxItems, FullText: crawl.FullTextAuto, AllowPrivate: true,
		})
	}
	return list, nil
}

// slugs are the names of the registry's sources.
func (a *App) slugs() []ledger.Slug {
	var slugs []ledger.Slug
	for _, s := range a.crawler.Sources() {
		slugs = append(slugs, s.Slug)
	}
	return slugs
}

// reloadSources reads the registry again. A broken one leaves the running one
// in force.
func (a *App) reloadSources(ctx context.Context) (crawl.Changes, error) {
	list, err := a.readSources()
	if err != nil {
		return crawl.Changes{}, err
	}
	changes, err := a.crawler.Reload(ctx, list)
	if err != nil {
		return crawl.Changes{}, fmt.Errorf("take over sources: %w", err)
	}
	return changes, nil
}
