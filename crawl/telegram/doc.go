// Package telegram crawls Telegram channels: with a user's account by MTProto
// (package mtproto below it), or without any credentials from the public
// preview pages at t.me/s. Both ways give the same items under the same keys,
// so that a source may change from one to the other.
package telegram
