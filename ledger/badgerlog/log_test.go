package badgerlog_test

import (
	"errors"
	"testing"

	"vesti.nixg.ru/ledger"
	"vesti.nixg.ru/ledger/ledgertest"
)

func TestQuick(t *testing.T) {
	l := ledgertest.Open(t)
	ctx := t.Context()
	items := []ledger.Item{
		{Source: "a", Key: "a1", Title: "T", Text: "Вышла новая версия ядра Linux один", Lane: ledger.LaneP1},
		{Source: "b", Key: "b1", Title: "T", Text: "Вышла новая  версия ядра Linux один", Lane: ledger.LaneP1},
		{Source: "a", Key: "a1", Title: "T2", Text: "Вышла новая  версия ядра Linux один", Lane: ledger.LaneP1},
		{Source: "a", Key: "a1", Title: "T2", Text: "Вышла новая  версия ядра Linux два три четыре", Lane: ledger.LaneP1},
		{Source: "a", Key: "a1", Title: "T2", Text: "Вышла новая  версия ядра Linux два три четыре", Lane: ledger.LaneP1},
		{Source: "a", Key: "a2", Title: "T2", Text: "Вышла новая  версия ядра Linux два три четыре", Lane: ledger.LaneP1},
	}
	out, err := l.Append(ctx, items)
	t.Log(out, err)
	c, err := l.Claim(ctx, ledger.ClaimRequest{Worker: "1"})
	t.Logf("%+v %v", c, err)
	_, err = l.Claim(ctx, ledger.ClaimRequest{Worker: "1", NoWait: true})
	if !errors.Is(err, ledger.ErrQueueEmpty) {
		t.Error(err)
	}
	t.Log(l.Queue())
	if err := l.Complete(ctx, c, ledger.PostClassified{Classification: ledger.Classification{Direction: "linux"}}); err != nil {
		t.Error(err)
	}
	t.Log(l.Queue())
	evs, err := l.ReadTexts(ctx, 0, 0)
	for _, e := range evs {
		t.Logf("%+v", e)
	}
	t.Log(l.Post(ctx, 1))
}
