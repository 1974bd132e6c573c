package feed

import "testing"

func TestLostItsWay(t *testing.T) {
	for final, want := range map[string]bool{
		"https://x.org/2025/news/login-to-the-city": false,
		"https://x.org/2025/news":                   false,
		"https://x.org/":                            true,
		"https://x.org/user/Login?to=/2025/news":    true,
		"https://sso.x.org/enter":                   true,
		"https://consent.y.org/m?continue=x":        true,
	} {
		if got := lostItsWay("https://x.org/2025/news", final); got != want {
			t.Errorf("%s: %v", final, got)
		}
	}
	if lostItsWay("https://auth.x.org/blog/1", "https://auth.x.org/blog/2") {
		t.Error("a site that is named like a gate")
	}
}
