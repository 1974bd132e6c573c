package telegram

import (
	"fmt"
	"strings"

	"vesti.nixg.ru/ledger"
)

// ChannelName reads a channel's username from what a person writes: "durov",
// "@durov", "https://t.me/durov", "t.me/s/durov/519", with blanks around. It
// returns an error matching ledger.ErrInvalid for what names no public channel.
func ChannelName(s string) (string, error) {
	name := strings.TrimSpace(s)
	bad := func(why string) error { return fmt.Errorf("%w: Telegram channel %q: %s", ledger.ErrInvalid, s, why) }
	lower := strings.ToLower(name)
	for _, p := range []string{"https://", "http://"} {
		if strings.HasPrefix(lower, p) {
			name, lower = name[len(p):], lower[len(p):]
		}
	}
	for _, host := range []string{"www.t.me/", "t.me/", "telegram.me/", "telegram.dog/"} {
		if strings.HasPrefix(lower, host) {
			name = strings.TrimPrefix(name[len(host):], "s/")
			name, _, _ = strings.Cut(name, "?")
			name, _, _ = strings.Cut(name, "/")
			if name == "c" || name == "joinchat" || strings.HasPrefix(name, "+") {
				return "", bad("an invitation or a private channel; only public channels can be read")
			}
			break
		}
	}
	name = strings.TrimPrefix(strings.TrimSpace(name), "@")
	// Telegram's own names have 4 characters or more; letters, digits and "_".
	if len(name) < 4 || len(name) > 32 {
		return "", bad("want a username of 4 to 32 characters, such as durov")
	}
	for i, c := range []byte(name) {
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		if !letter && (i == 0 || c != '_' && (c < '0' || c > '9')) {
			return "", bad("want a username of letters, digits and \"_\", beginning with a letter")
		}
	}
	return name, nil
}

// sameName reports whether two usernames are one: they have no case.
func sameName(a, b string) bool { return strings.EqualFold(a, b) }
