package crawl

import (
	"fmt"
	"net/url"
	"strings"

	"vesti.nixg.ru/ledger"
)

// ChannelName returns the name of a Telegram channel as it is stored, from the
// ways in which people write it: "name", "@name", "https://t.me/name",
// "t.me/s/name/". Names are compared without case, so the result is in lower
// case. The error matches ledger.ErrInvalid.
func ChannelName(s string) (string, error) {
	name := strings.TrimSpace(s)
	rest := name
	if i := strings.Index(rest, "://"); i >= 0 {
		rest = rest[i+3:]
	}
	for _, host := range []string{"t.me/", "www.t.me/", "telegram.me/", "telegram.dog/"} {
		if len(rest) > len(host) && strings.EqualFold(rest[:len(host)], host) {
			u, err := url.Parse("https://" + rest)
			if err != nil {
				return "", fmt.Errorf("%w: channel %q cannot be read as a URL", ledger.ErrInvalid, s)
			}
			name = strings.TrimPrefix(strings.Trim(u.Path, "/"), "s/")
			name, _, _ = strings.Cut(name, "/") // a message's number
			break
		}
	}
	name = strings.ToLower(strings.TrimPrefix(name, "@"))
	if !isChannelName(name) {
		return "", fmt.Errorf("%w: channel %q: want the public name of a channel, 4 to 32 of a-z, 0-9 and _, such as "+
			"durov, @durov or https://t.me/durov", ledger.ErrInvalid, s)
	}
	return name, nil
}

func isChannelName(name string) bool {
	if len(name) < 4 || len(name) > 32 || name[0] < 'a' || name[0] > 'z' {
		return false
	}
	return strings.IndexFunc(name, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '_'
	}) < 0
}
