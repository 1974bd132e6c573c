// Package badgerlog is the ledger's engine on BadgerDB: the log, the queue and
// their indexes in one folder that one process holds.
package badgerlog

import (
	"context"
	"errors"

	"vesti.nixg.ru/ledger"
)

// Log is an open store. Its methods are safe for concurrent use.
type Log struct{}

var errSkeleton = errors.New("not built yet")

// Open opens the store in o.Dir, or makes one.
func Open(ctx context.Context, o Options) (*Log, error) { return nil, errSkeleton }

func (l *Log) Append(ctx context.Context, items []ledger.Item) ([]ledger.Appended, error) {
	return nil, errSkeleton
}

func (l *Log) KnownItems(ctx context.Context, keys []ledger.ItemKey) ([]ledger.KnownItem, error) {
	return nil, errSkeleton
}

func (l *Log) Record(ctx context.Context, events ...ledger.Event) ([]ledger.Seq, error) {
	return nil, errSkeleton
}

func (l *Log) Source(ctx context.Context, slug ledger.Slug) (ledger.SourceState, error) {
	return ledger.SourceState{}, errSkeleton
}

func (l *Log) Claim(ctx context.Context, r ledger.ClaimRequest) (ledger.Claim, error) {
	return ledger.Claim{}, errSkeleton
}

func (l *Log) Heartbeat(ctx context.Context, c ledger.Claim) (ledger.Claim, error) {
	return ledger.Claim{}, errSkeleton
}

func (l *Log) Complete(ctx context.Context, c ledger.Claim, d ledger.PostClassified) error {
	return errSkeleton
}

func (l *Log) CompleteLater(ctx context.Context, c ledger.Claim, d ledger.PostClassified, done func(error)) error {
	return errSkeleton
}

func (l *Log) Fail(ctx context.Context, c ledger.Claim, f ledger.Failure) (parked bool, err error) {
	return false, errSkeleton
}

func (l *Log) Release(ctx context.Context, c ledger.Claim, r ledger.PostReturned) error {
	return errSkeleton
}

func (l *Log) Head() ledger.Seq { return 0 }

func (l *Log) Wait(ctx context.Context, after ledger.Seq) error { return errSkeleton }

func (l *Log) Read(ctx context.Context, after ledger.Seq, limit int) ([]ledger.Event, error) {
	return nil, errSkeleton
}

func (l *Log) ReadTexts(ctx context.Context, after ledger.Seq, limit int) ([]ledger.Event, error) {
	return nil, errSkeleton
}

func (l *Log) Post(ctx context.Context, n ledger.PostNum) (ledger.Post, error) {
	return ledger.Post{}, errSkeleton
}

func (l *Log) FindPost(ctx context.Context, id string) (ledger.PostNum, error) { return 0, errSkeleton }

func (l *Log) PostEvents(ctx context.Context, n ledger.PostNum) ([]ledger.Event, error) {
	return nil, errSkeleton
}

func (l *Log) SourceEvents(ctx context.Context, slug ledger.Slug, limit int) ([]ledger.Event, error) {
	return nil, errSkeleton
}

func (l *Log) Queue() ledger.QueueGauge { return ledger.QueueGauge{} }

func (l *Log) Parked(ctx context.Context, cause ledger.Cause, limit int) ([]ledger.PostNum, error) {
	return nil, errSkeleton
}

func (l *Log) Store(namespace string) ledger.Store { return nil }

func (l *Log) Close() error { return errSkeleton }
