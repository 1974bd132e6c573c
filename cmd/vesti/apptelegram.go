package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"

	"vesti.nixg.ru/crawl"
	"vesti.nixg.ru/crawl/fetch"
	"vesti.nixg.ru/crawl/telegram"
	"vesti.nixg.ru/crawl/telegram/mtproto"
)

// newTelegram reads channels with the configured account, and from their public
// preview pages where there is none.
func (a *App) newTelegram(client *fetch.Client, proxy *url.URL) (crawl.Kind, error) {
	logger := a.logger.With("part", "telegram")
	store := a.log.Store(telegram.Namespace)
	o := telegram.Options{Fetch: client, Store: store, Log: logger, Registerer: a.registry}
	if a.cfg.TelegramAPIID != 0 {
		account, err := mtproto.New(mtproto.Options{
			APIID: a.cfg.TelegramAPIID, APIHash: a.cfg.TelegramAPIHash, Store: store, Version: version, Proxy: proxy,
			Log: logger, Registerer: a.registry,
		})
		switch {
		case errors.Is(err, mtproto.ErrNotBuilt):
			a.logger.Warn("telegram.api_id is set in vain", "error", err)
		case err != nil:
			return nil, usagef("settings telegram.api_id, telegram.api_hash and crawl.proxy: %v", err)
		default:
			a.telegram, o.Account = account, account
		}
	}
	kind, err := telegram.New(o)
	if err != nil {
		return nil, fmt.Errorf("set up Telegram: %w", err)
	}
	a.channels = kind
	return kind, nil
}

// noAccount says why there is no account.
func (a *App) noAccount() error {
	_, err := mtproto.New(mtproto.Options{Store: a.log.Store(telegram.Namespace)})
	if errors.Is(err, mtproto.ErrNotBuilt) {
		return err
	}
	return mtproto.ErrNoAPI
}

// accountStatus is how the account stands, also where there is none.
func (a *App) accountStatus(ctx context.Context) (mtproto.Status, error) {
	if a.telegram != nil {
		return a.telegram.Status(ctx)
	}
	err, state := a.noAccount(), mtproto.StateNoAPI
	if errors.Is(err, mtproto.ErrNotBuilt) {
		state = mtproto.StateNotBuilt
	}
	return mtproto.Status{State: state, Message: err.Error()}, nil
}

// telegramState tells the pages how the account stands.
func (a *App) telegramState(ctx context.Context) (state, message string) {
	st, err := a.telegram.Status(ctx)
	if err != nil {
		return string(mtproto.StateRevoked), err.Error()
	}
	return string(st.State), st.Message
}
