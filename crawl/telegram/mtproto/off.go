//go:build notelegram

package mtproto

import (
	"context"

	"vesti.nixg.ru/crawl"
	"vesti.nixg.ru/crawl/telegram"
	"vesti.nixg.ru/ledger"
)

// Account is absent from this build.
type Account struct{}

var _ telegram.Account = (*Account)(nil)

// New returns ErrNotBuilt.
func New(Options) (*Account, error) { return nil, ErrNotBuilt }

func absent() error {
	return &crawl.Error{Cause: ledger.CauseLogin, Message: ErrNotBuilt.Error(), Err: ErrNotBuilt}
}

// Close does nothing.
func (*Account) Close() error { return nil }

// Ready implements telegram.Account.
func (*Account) Ready(context.Context) error { return absent() }

// Resolve implements telegram.Account.
func (*Account) Resolve(context.Context, string, bool) (telegram.Channel, error) {
	return telegram.Channel{}, absent()
}

// History implements telegram.Account.
func (*Account) History(context.Context, int64, int, int, int) (telegram.History, error) {
	return telegram.History{}, absent()
}

// Messages implements telegram.Account.
func (*Account) Messages(context.Context, int64, []int) (telegram.History, error) {
	return telegram.History{}, absent()
}

// Status says that MTProto is absent.
func (*Account) Status(context.Context) (Status, error) {
	return Status{State: StateNotBuilt, Message: ErrNotBuilt.Error()}, nil
}

// Login returns ErrNotBuilt.
func (*Account) Login(context.Context, Prompter) (Identity, error) { return Identity{}, ErrNotBuilt }

// Logout returns ErrNotBuilt.
func (*Account) Logout(context.Context) error { return ErrNotBuilt }

// ImportTelethon returns ErrNotBuilt.
func (*Account) ImportTelethon(context.Context, string) (Identity, error) {
	return Identity{}, ErrNotBuilt
}

// ImportDesktop returns ErrNotBuilt.
func (*Account) ImportDesktop(context.Context, string, []byte) (Identity, error) {
	return Identity{}, ErrNotBuilt
}
