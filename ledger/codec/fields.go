package codec

import "vesti.nixg.ru/ledger"

// payload writes p. The cases are one for each type; a test walks them all.
func (c *coder) payload(p ledger.Payload) {
	switch p := p.(type) {
	case ledger.PostFetched:
		postFetched(c, &p)
	case ledger.PostSeenAgain:
		postSeenAgain(c, &p)
	case ledger.PostRevised:
		postRevised(c, &p)
	case ledger.PostClassified:
		postClassified(c, &p)
	case ledger.PostFailed:
		postFailed(c, &p)
	case ledger.PostReturned:
		postReturned(c, &p)
	case ledger.PostMeasured:
		measures(c, &p.Measures)
	case ledger.PostRemoved:
		postRemoved(c, &p)
	case ledger.PostPrioritised:
		uintField(c, 1, &p.Lane)
	case ledger.PostReviewed:
		postReviewed(c, &p)
	case ledger.StoryGrouped:
		storyGrouped(c, &p)
	case ledger.StoryUngrouped:
		uintField(c, 1, &p.Story)
	case ledger.PostExpired:
	case ledger.SourceCrawled:
		sourceCrawled(c, &p)
	case ledger.SourceFailed:
		sourceFailed(c, &p)
	case ledger.SourceThrottled:
		sourceThrottled(c, &p)
	case ledger.SourceReset:
	case ledger.SourceMoved:
		sourceMoved(c, &p)
	case ledger.RunsSummarised:
		runsSummarised(c, &p)
	case ledger.BodiesDropped:
		bodiesDropped(c, &p)
	}
}

// decodePayload reads a payload of type t from the parsed fields.
func (c *coder) decodePayload(t ledger.Type) ledger.Payload {
	switch t {
	case ledger.TypePostFetched:
		return read(c, postFetched)
	case ledger.TypePostSeenAgain:
		return read(c, postSeenAgain)
	case ledger.TypePostRevised:
		return read(c, postRevised)
	case ledger.TypePostClassified:
		return read(c, postClassified)
	case ledger.TypePostFailed:
		return read(c, postFailed)
	case ledger.TypePostReturned:
		return read(c, postReturned)
	case ledger.TypePostMeasured:
		return ledger.PostMeasured{Measures: read(c, measures)}
	case ledger.TypePostRemoved:
		return read(c, postRemoved)
	case ledger.TypePostPrioritised:
		var p ledger.PostPrioritised
		uintField(c, 1, &p.Lane)
		return p
	case ledger.TypePostReviewed:
		return read(c, postReviewed)
	case ledger.TypeStoryGrouped:
		return read(c, storyGrouped)
	case ledger.TypeStoryUngrouped:
		var p ledger.StoryUngrouped
		uintField(c, 1, &p.Story)
		return p
	case ledger.TypePostExpired:
		return ledger.PostExpired{}
	case ledger.TypeSourceCrawled:
		return read(c, sourceCrawled)
	case ledger.TypeSourceFailed:
		return read(c, sourceFailed)
	case ledger.TypeSourceThrottled:
		return read(c, sourceThrottled)
	case ledger.TypeSourceReset:
		return ledger.SourceReset{}
	case ledger.TypeSourceMoved:
		return read(c, sourceMoved)
	case ledger.TypeRunsSummarised:
		return read(c, runsSummarised)
	case ledger.TypeBodiesDropped:
		return read(c, bodiesDropped)
	default:
		return nil
	}
}

func read[T any](c *coder, list func(*coder, *T)) T {
	var v T
	list(c, &v)
	return v
}

// fetchedLinkedTo is PostFetched.LinkedTo; see AppendLink.
const fetchedLinkedTo = 40

// postFetched holds the item's fields beside its own: they are read together.
func postFetched(c *coder, p *ledger.PostFetched) {
	hashField(c, 1, &p.ID)
	uintField(c, 2, &p.NormVersion)
	intField(c, 3, &p.TextLen)
	i := &p.Item // its Source is the event's, its Text is held apart
	stringField(c, 4, &i.Key)
	hashField(c, 5, &i.Fingerprint)
	stringField(c, 6, &i.URL)
	stringField(c, 7, &i.CanonicalURL)
	stringField(c, 8, &i.Title)
	stringField(c, 9, &i.Author)
	timeField(c, 10, &i.Published)
	stringField(c, 11, &i.PublishedRaw)
	stringField(c, 12, &i.TextFrom)
	boolField(c, 13, &i.Truncated)
	stringField(c, 14, &i.Lang)
	stringField(c, 15, &i.Direction)
	boolField(c, 16, &i.IsOwn)
	uintField(c, 17, &i.Lane)
	messageField(c, 18, &i.Measures, measures)
	stringField(c, 19, &i.ForwardOf)
	stringsField(c, 20, &i.Media)
	stringField(c, 21, &i.ItemID)
	uintField(c, fetchedLinkedTo, &p.LinkedTo)
}

func postSeenAgain(c *coder, p *ledger.PostSeenAgain) {
	stringField(c, 1, &p.Key)
	stringField(c, 2, &p.URL)
	stringField(c, 3, &p.CanonicalURL)
	stringField(c, 4, &p.Title)
	timeField(c, 5, &p.Published)
	stringField(c, 6, &p.ItemID)
	messageField(c, 7, &p.Measures, measures)
}

func postRevised(c *coder, p *ledger.PostRevised) {
	stringField(c, 1, &p.Key)
	intField(c, 2, &p.Revision)
	boolField(c, 3, &p.New)
	boolField(c, 4, &p.Requeued)
	boolField(c, 5, &p.TextChanged)
	hashField(c, 6, &p.Hash)
	stringField(c, 7, &p.Title)
	intField(c, 8, &p.TextLen)
	stringField(c, 9, &p.TextFrom)
	stringField(c, 10, &p.URL)
	stringField(c, 11, &p.CanonicalURL)
	timeField(c, 12, &p.Published)
	uintField(c, 13, &p.LinkedTo)
}

func postClassified(c *coder, p *ledger.PostClassified) {
	classification(c, &p.Classification)
	intField(c, 20, &p.Revision)
	boolField(c, 21, &p.Provisional)
	boolField(c, 22, &p.Replay)
}

func classification(c *coder, p *ledger.Classification) {
	stringField(c, 1, &p.Direction)
	floatField(c, 2, &p.Relevance)
	floatField(c, 3, &p.Interest)
	stringField(c, 4, &p.Summary)
	floatField(c, 5, &p.Confidence)
	stringField(c, 6, &p.Stage)
	messagesField(c, 7, &p.Reasons, reason)
	stringField(c, 8, &p.RuleSet)
	stringField(c, 9, &p.PromptHash)
	stringField(c, 10, &p.Model)
	stringField(c, 11, &p.ModelDigest)
	stringField(c, 12, &p.RawReply)
	intField(c, 13, &p.Duration)
}

func reason(c *coder, p *ledger.Reason) {
	stringField(c, 1, &p.Stage)
	stringField(c, 2, &p.Rule)
	stringField(c, 3, &p.Matched)
	floatField(c, 4, &p.Weight)
	stringField(c, 5, &p.Note)
}

func postFailed(c *coder, p *ledger.PostFailed) {
	intField(c, 1, &p.Attempt)
	stringField(c, 2, &p.Cause)
	stringField(c, 3, &p.Message)
	timeField(c, 4, &p.RetryAt)
	boolField(c, 5, &p.Parked)
	uintField(c, 6, &p.Stage)
}

func postReturned(c *coder, p *ledger.PostReturned) {
	stringField(c, 1, &p.Reason)
	uintField(c, 2, &p.Stage)
	uintField(c, 3, &p.Lane)
	stringField(c, 4, &p.Note)
}

func measures(c *coder, p *ledger.Measures) {
	countField(c, 1, &p.Views)
	countField(c, 2, &p.Reactions)
	boolField(c, 3, &p.Rounded)
}

func postRemoved(c *coder, p *ledger.PostRemoved) {
	stringField(c, 1, &p.Key)
	stringField(c, 2, &p.Cause)
}

func postReviewed(c *coder, p *ledger.PostReviewed) {
	stringField(c, 1, &p.Verdict)
	stringField(c, 2, &p.Direction)
	stringField(c, 3, &p.Note)
}

func storyGrouped(c *coder, p *ledger.StoryGrouped) {
	uintField(c, 1, &p.Story)
	floatField(c, 2, &p.Similarity)
}

func run(c *coder, p *ledger.Run) {
	stringField(c, 1, &p.Trigger)
	timeField(c, 2, &p.Started)
	intField(c, 3, &p.Duration)
	intField(c, 4, &p.HTTPStatus)
	intField(c, 5, &p.Fetched)
	intField(c, 6, &p.New)
	intField(c, 7, &p.SeenAgain)
	intField(c, 8, &p.Revised)
	intField(c, 9, &p.Dropped)
	intField(c, 10, &p.Bytes)
	boolField(c, 11, &p.Truncated)
	timeField(c, 12, &p.Next)
}

func sourceCrawled(c *coder, p *ledger.SourceCrawled) {
	run(c, &p.Run)
	boolField(c, 20, &p.NotModified)
	boolField(c, 21, &p.Empty)
	messageField(c, 22, &p.Validators, validators)
	stringField(c, 23, &p.Title)
	stringField(c, 24, &p.Cursor)
}

func validators(c *coder, p *ledger.Validators) {
	stringField(c, 1, &p.ETag)
	stringField(c, 2, &p.LastModified)
	hashField(c, 3, &p.BodyHash)
	stringField(c, 4, &p.LastBuildDate)
	timeField(c, 5, &p.FullAt)
}

func sourceFailed(c *coder, p *ledger.SourceFailed) {
	run(c, &p.Run)
	stringField(c, 20, &p.Cause)
	stringField(c, 21, &p.Message)
}

func sourceThrottled(c *coder, p *ledger.SourceThrottled) {
	run(c, &p.Run)
	timeField(c, 20, &p.Until)
	stringField(c, 21, &p.Message)
}

func sourceMoved(c *coder, p *ledger.SourceMoved) {
	stringField(c, 1, &p.From)
	stringField(c, 2, &p.URL)
}

func runsSummarised(c *coder, p *ledger.RunsSummarised) {
	uintField(c, 1, &p.Through)
	timeField(c, 2, &p.From)
	timeField(c, 3, &p.To)
	intField(c, 4, &p.Runs)
	intField(c, 5, &p.Failed)
	intField(c, 6, &p.Fetched)
	intField(c, 7, &p.New)
	messageField(c, 8, &p.State, sourceState)
}

func bodiesDropped(c *coder, p *ledger.BodiesDropped) {
	uintField(c, 1, &p.Through)
	intField(c, 2, &p.Count)
}

func sourceState(c *coder, p *ledger.SourceState) {
	uintField(c, 1, &p.Status)
	timeField(c, 2, &p.LastFetch)
	timeField(c, 3, &p.LastOK)
	timeField(c, 4, &p.LastNew)
	timeField(c, 5, &p.Next)
	intField(c, 6, &p.HTTPStatus)
	intField(c, 7, &p.ErrorCount)
	stringField(c, 8, &p.LastError)
	stringField(c, 9, &p.LastCause)
	timeField(c, 10, &p.ThrottledUntil)
	messageField(c, 11, &p.Validators, validators)
	stringField(c, 12, &p.Title)
	stringField(c, 13, &p.MovedFrom)
	stringField(c, 14, &p.MovedTo)
	stringField(c, 15, &p.Cursor)
	intField(c, 16, &p.Runs)
	intField(c, 17, &p.Failures)
	intField(c, 18, &p.Fetched)
	intField(c, 19, &p.New)
	intField(c, 20, &p.SeenAgain)
	intField(c, 21, &p.Revised)
	intField(c, 22, &p.Dropped)
}
