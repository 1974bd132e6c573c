package httpui_test

import (
	"time"

	"vesti.nixg.ru/crawl"
	"vesti.nixg.ru/ledger"
)

// demoSources are a registry in every condition a source can be in.
func demoSources() []crawl.Source {
	source := func(slug, name string, d ledger.Direction, lang string, p ledger.Priority) crawl.Source {
		return crawl.Source{
			Slug: ledger.Slug(slug), Name: name, URL: "https://" + slug + ".example.org/", FeedURL: "https://" + slug + ".example.org/rss.xml",
			Crawler: ledger.CrawlerRSS, Direction: d, Lang: lang, Priority: p, Enabled: true,
		}
	}
	telegram := source("chips", "Чипы и платы", "electronics", "ru", ledger.P0)
	telegram.Crawler, telegram.FeedURL, telegram.Channel = ledger.CrawlerTelegram, "", "chips_and_boards"
	off := source("attic", "The Attic", "games", "en", ledger.P2)
	off.Enabled = false
	return []crawl.Source{
		source("lwn", "Kernel Weekly", "linux", "en", ledger.P0),
		source("opennet", "Открытая сеть", "linux", "ru", ledger.P0),
		source("chambers", "Chamber Notes", "politics", "en", ledger.P1),
		source("tensor", "Tensor Letters", "llm", "en", ledger.P1),
		telegram,
		source("broken", "Broken Press", "tech", "en", ledger.P2),
		source("flaky", "Flaky Wire", "tech", "en", ledger.P1),
		source("busy", "Busy Host", "tech", "en", ledger.P1),
		source("fresh", "Fresh Source", "games", "en", ledger.P2),
		off,
	}
}

// fill puts a morning's work into the desk.
func (d *desk) fill() {
	d.t.Helper()
	now := d.clock.Now()
	run := func(ago time.Duration, next time.Duration, status int) ledger.Run {
		return ledger.Run{
			Trigger: ledger.TriggerSchedule, Started: now.Add(-ago), Duration: 420 * time.Millisecond, HTTPStatus: status,
			Fetched: 25, Bytes: 48_213, Next: now.Add(next),
		}
	}
	events := []ledger.Event{}
	ran := func(slug ledger.Slug, p ledger.Payload) {
		events = append(events, ledger.NewEvent(ledger.ActorCrawler, 0, slug, p))
	}
	good := run(7*time.Minute, 8*time.Minute, 200)
	good.New, good.SeenAgain, good.Dropped = 3, 1, 2
	ran("lwn", ledger.SourceCrawled{Run: good, Title: "Kernel Weekly", Validators: ledger.Validators{
		ETag: `"5f1c-62a0b"`, LastModified: "Mon, 02 Mar 2026 05:50:00 GMT", LastBuildDate: "Mon, 02 Mar 2026 05:49:58 GMT", FullAt: now.Add(-3 * time.Hour),
	}})
	ran("opennet", ledger.SourceCrawled{Run: good, Validators: ledger.Validators{ETag: `W/"aa31"`}})
	ran("chambers", ledger.SourceCrawled{Run: run(31*time.Minute, 29*time.Minute, 304), NotModified: true})
	ran("tensor", ledger.SourceCrawled{Run: run(12*time.Minute, 48*time.Minute, 200)})
	ran("chips", ledger.SourceCrawled{Run: run(2*time.Minute, 13*time.Minute, 200)})
	for i := range 7 {
		ran("broken", ledger.SourceFailed{
			Run: run(time.Duration(30-4*i)*time.Hour, 20*time.Hour, 404), Cause: ledger.CauseHTTP,
			Message: "broken.example.org answered 404 Not Found to https://broken.example.org/rss.xml",
		})
	}
	ran("flaky", ledger.SourceFailed{
		Run: run(18*time.Minute, 42*time.Minute, 0), Cause: ledger.CauseTimeout,
		Message: "flaky.example.org sent no headers within 20s",
	})
	ran("busy", ledger.SourceThrottled{Run: run(40*time.Minute, time.Hour, 429), Until: now.Add(time.Hour), Message: "429 Too Many Requests"})
	if _, err := d.log.Record(d.t.Context(), events...); err != nil {
		d.t.Fatal(err)
	}
	d.fillPosts(now)
	d.register(demoSources())
	d.settle()
	d.clock.advance(4 * time.Minute)
}

func (d *desk) fillPosts(now time.Time) {
	d.t.Helper()
	views := int64(18_400)
	for i, p := range []struct {
		source      ledger.Slug
		title, text string
		lang        string
		c           ledger.Classification
	}{
		{
			"lwn", "Kernel 6.20 released with a rewritten scheduler and live update support",
			"The new kernel release brings a rewritten scheduler, live update of running hypervisors and support for a dozen new boards.\n\n" +
				"The merge window closed with 14,200 changes from 2,100 developers. The maintainers say the scheduler work took three years; " +
				"early measurements show latency tails cut by a third on busy machines.\n\nDistributions are expected to pick the release up in spring.",
			"en", judged("linux", .97, .88, "Kernel 6.20 brings a rewritten scheduler and live update."),
		},
		{
			"opennet", "Выпуск ядра Linux 6.20 с новым планировщиком",
			"Представлен выпуск ядра Linux 6.20. Планировщик задач переписан, добавлено обновление работающих гипервизоров без остановки, " +
				"поддержка двенадцати новых плат.\n\nВ новую версию принято 14,2 тысячи исправлений от 2,1 тысячи разработчиков.",
			"ru", judged("linux", .95, .81, "Вышло ядро Linux 6.20 с новым планировщиком."),
		},
		{
			"tensor", "Small models catch up: a 4B model matches last year's 70B on code review",
			"A group of university labs trained a four billion parameter model on curated reviews. On the public benchmark it matches models seventeen times its size.",
			"en", judged("llm", .91, .93, ""),
		},
		{
			"chambers", "Committee agrees on right-to-repair text after a night of talks",
			"Negotiators agreed on a compromise that obliges makers of phones and tablets to sell spare parts for ten years.",
			"en", judged("politics", .84, .62, ""),
		},
		{
			"chips", "Плата на RISC-V с 64 ядрами поступит в продажу в мае",
			"Производитель объявил цену и сроки: плата с 64 ядрами RISC-V и 128 ГБ памяти появится в мае. Схемы обещают открыть.",
			"ru", judged("electronics", .93, .74, "Плата на RISC-V с 64 ядрами выйдет в мае."),
		},
		{"tensor", "Weekly links", "A few links without comment.", "en", judged("llm", .31, .08, "")},
		{"chambers", "Open thread", "What are you reading this week?", "en", judged("politics", .2, .05, "")},
	} {
		d.add(ledger.Item{
			Source: p.source, URL: "https://" + string(p.source) + ".example.org/2026/03/" + string(rune('a'+i)) + "?utm_source=rss",
			CanonicalURL: "https://" + string(p.source) + ".example.org/2026/03/" + string(rune('a'+i)), Title: p.title, Text: p.text,
			TextFrom: ledger.TextContent, Lang: p.lang, Published: now.Add(-time.Duration(i*47+9) * time.Minute), Lane: ledger.LaneP0,
			Measures: ledger.Measures{Views: &views}, Author: "A. Writer",
		})
		d.judge(p.c)
	}
	for _, title := range []string{"A post that nobody has judged yet", "Another one in the queue"} {
		d.add(ledger.Item{
			Source: "lwn", URL: "https://lwn.example.org/" + title[:4], Title: title, Text: title + ", with enough letters to be a post of its own.",
			TextFrom: ledger.TextSummary, Lang: "en", Published: now.Add(-3 * time.Minute), Lane: ledger.LaneP0,
		})
	}
}

// judged is a decision with reasons.
func judged(direction ledger.Direction, relevance, interest float64, summary string) ledger.Classification {
	return ledger.Classification{
		Direction: direction, Relevance: relevance, Interest: interest, Summary: summary, Confidence: relevance - .1, Stage: "llm",
		Reasons: []ledger.Reason{
			{Stage: "keyword", Rule: string(direction) + "/core", Matched: "kernel release", Weight: 2.5},
			{Stage: "keyword", Rule: string(direction) + "/weak", Matched: "scheduler", Weight: .75, Note: "twice in the title"},
			{Stage: "llm", Note: "The text announces a release and says what is new."},
		},
		RuleSet: "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08", PromptHash: "2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae",
		Model: "qwen3:4b", ModelDigest: "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
		RawReply: `{"direction":"` + string(direction) + `","relevance":0.97,"interest":0.88,"summary":"…"}`, Duration: 1840 * time.Millisecond,
	}
}
