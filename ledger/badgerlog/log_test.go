package badgerlog_test

import (
	"testing"
	"time"

	"vesti.nixg.ru/ledger/badgerlog"
	"vesti.nixg.ru/ledger/ledgertest"
)

func TestEngine(t *testing.T) {
	for _, d := range []badgerlog.Durability{badgerlog.Durable, badgerlog.Relaxed} {
		t.Run(d.String(), func(t *testing.T) {
			ledgertest.Exercise(t, func(t *testing.T, lease, retry time.Duration) ledgertest.Engine {
				return ledgertest.Open(t, ledgertest.Lease(lease), ledgertest.Retry(3, retry, 10*retry),
					func(o *badgerlog.Options) { o.Durability = d })
			})
		})
	}
}
