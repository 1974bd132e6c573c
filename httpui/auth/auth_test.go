package auth_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"vesti.nixg.ru/httpui/auth"
	"vesti.nixg.ru/ledger"
	"vesti.nixg.ru/ledger/ledgertest"
)

const home = "192.0.2.7"

// open returns accounts on a real store, with a clock that the test moves.
func open(t *testing.T) (*auth.Accounts, *time.Time, ledger.Store) {
	t.Helper()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	store := ledgertest.Open(t).Store("httpui")
	return auth.New(store, func() time.Time { return now }, auth.Cost{Passes: 1, Memory: 64}), &now, store
}

func firstPassword(t *testing.T, a *auth.Accounts) string {
	t.Helper()
	password, err := a.EnsurePassword(t.Context())
	if err != nil || password == "" {
		t.Fatalf("first password %q: %v", password, err)
	}
	return password
}

func TestFirstPasswordIsMadeOnceAndStoredHashed(t *testing.T) {
	a, _, store := open(t)
	password := firstPassword(t, a)
	if again, err := a.EnsurePassword(t.Context()); err != nil || again != "" {
		t.Errorf("second start gave %q, %v; want nothing", again, err)
	}
	err := store.View(t.Context(), func(tx ledger.Tx) error {
		return tx.Scan(nil, nil, func(key, value []byte) (bool, error) {
			if strings.Contains(string(key)+string(value), password) {
				t.Errorf("%s holds the password", key)
			}
			if string(key) == "password" && !strings.Contains(string(value), "$argon2id$v=19$m=64,t=1,p=1$") {
				t.Errorf("password stored as %s", value)
			}
			return true, nil
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.Login(t.Context(), home, "test", password); err != nil {
		t.Errorf("login with the first password: %v", err)
	}
	if _, err := a.Login(t.Context(), home, "test", password+"x"); !errors.Is(err, auth.ErrWrongPassword) {
		t.Errorf("login with another: %v, want ErrWrongPassword", err)
	}
}

func TestPasswordOfAnotherKeyboard(t *testing.T) {
	a, _, _ := open(t)
	secret, err := a.Login(t.Context(), home, "test", firstPassword(t, a))
	if err != nil {
		t.Fatal(err)
	}
	_ = secret
	if err := a.ChangePassword(t.Context(), home, mustReset(t, a), "пароль с ё и й", ""); err != nil {
		t.Fatal(err)
	}
	decomposed := "пароль с ё и й"
	if _, err := a.Login(t.Context(), home, "test", decomposed); err != nil {
		t.Errorf("the same characters, decomposed: %v", err)
	}
}

func mustReset(t *testing.T, a *auth.Accounts) string {
	t.Helper()
	password, err := a.ResetPassword(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return password
}

func TestChangeOfPasswordEndsTheOtherSessions(t *testing.T) {
	a, _, _ := open(t)
	password := firstPassword(t, a)
	mine, other := login(t, a, password), login(t, a, password)
	if err := a.ChangePassword(t.Context(), home, password, "short", mine); !errors.Is(err, auth.ErrWeakPassword) {
		t.Errorf("short password: %v, want ErrWeakPassword", err)
	}
	if err := a.ChangePassword(t.Context(), home, "wrong password", "long enough", mine); !errors.Is(err, auth.ErrWrongPassword) {
		t.Errorf("wrong old password: %v, want ErrWrongPassword", err)
	}
	if err := a.ChangePassword(t.Context(), home, password, "long enough", mine); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Session(t.Context(), mine); err != nil {
		t.Errorf("the session that changed it: %v", err)
	}
	if _, err := a.Session(t.Context(), other); !errors.Is(err, auth.ErrNoSession) {
		t.Errorf("another session: %v, want ErrNoSession", err)
	}
	if _, err := a.Login(t.Context(), home, "test", password); !errors.Is(err, auth.ErrWrongPassword) {
		t.Errorf("the old password: %v, want ErrWrongPassword", err)
	}
	mustReset(t, a)
	if _, err := a.Session(t.Context(), mine); !errors.Is(err, auth.ErrNoSession) {
		t.Errorf("a session after a reset: %v, want ErrNoSession", err)
	}
}

func login(t *testing.T, a *auth.Accounts, password string) string {
	t.Helper()
	secret, err := a.Login(t.Context(), home, "test", password)
	if err != nil {
		t.Fatal(err)
	}
	return secret
}

func TestSessionsEnd(t *testing.T) {
	a, now, store := open(t)
	password := firstPassword(t, a)
	begin := *now
	secret := login(t, a, password)
	for now.Sub(begin) < auth.LifeTime {
		if _, err := a.Session(t.Context(), secret); err != nil {
			t.Fatalf("in use after %s: %v", now.Sub(begin), err)
		}
		*now = now.Add(auth.IdleTime / 2)
	}
	*now = now.Add(time.Second)
	if _, err := a.Session(t.Context(), secret); !errors.Is(err, auth.ErrNoSession) {
		t.Errorf("after its life time: %v, want ErrNoSession", err)
	}

	idle := login(t, a, password)
	*now = now.Add(auth.IdleTime + time.Second)
	if _, err := a.Session(t.Context(), idle); !errors.Is(err, auth.ErrNoSession) {
		t.Errorf("after idling: %v, want ErrNoSession", err)
	}
	login(t, a, password)
	if n := count(t, store, "session/"); n != 1 {
		t.Errorf("%d sessions stored after a login, want only the new one", n)
	}
	if err := a.Logout(t.Context(), secret); err != nil {
		t.Errorf("logout of a session that is none: %v", err)
	}
}

func count(t *testing.T, store ledger.Store, prefix string) (n int) {
	t.Helper()
	err := store.View(t.Context(), func(tx ledger.Tx) error {
		n = 0
		return tx.Scan([]byte(prefix), nil, func(_, _ []byte) (bool, error) {
			n++
			return true, nil
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestLogout(t *testing.T) {
	a, _, _ := open(t)
	password := firstPassword(t, a)
	one, two := login(t, a, password), login(t, a, password)
	if list, err := a.Sessions(t.Context()); err != nil || len(list) != 2 {
		t.Fatalf("%d sessions, %v; want 2", len(list), err)
	}
	if err := a.Logout(t.Context(), one); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Session(t.Context(), one); !errors.Is(err, auth.ErrNoSession) {
		t.Errorf("after logout: %v", err)
	}
	if _, err := a.Session(t.Context(), two); err != nil {
		t.Errorf("another session after logout: %v", err)
	}
	if err := a.LogoutAll(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Session(t.Context(), two); !errors.Is(err, auth.ErrNoSession) {
		t.Errorf("after logout everywhere: %v", err)
	}
}

func TestTokens(t *testing.T) {
	a, _, _ := open(t)
	secret, err := a.CreateToken(t.Context(), "grafana")
	if err != nil {
		t.Fatal(err)
	}
	token, err := a.CheckToken(t.Context(), secret)
	if err != nil || token.Name != "grafana" {
		t.Fatalf("token %+v, %v", token, err)
	}
	for _, wrong := range []string{"", "x", token.ID, strings.ToUpper(secret)} {
		if _, err := a.CheckToken(t.Context(), wrong); !errors.Is(err, auth.ErrNoSession) {
			t.Errorf("secret %q: %v, want ErrNoSession", wrong, err)
		}
	}
	if err := a.RevokeToken(t.Context(), token.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := a.CheckToken(t.Context(), secret); !errors.Is(err, auth.ErrNoSession) {
		t.Errorf("revoked: %v, want ErrNoSession", err)
	}
}

func TestGuessingIsSlowedDown(t *testing.T) {
	a, now, _ := open(t)
	password := firstPassword(t, a)
	guess := func(address string) error {
		_, err := a.Login(t.Context(), address, "test", "wrong")
		return err
	}
	var throttled *auth.ThrottledError
	tries := 0
	for !errors.As(guess(home), &throttled) {
		if tries++; tries > 20 {
			t.Fatal("20 wrong passwords from one address and no end")
		}
	}
	if tries < 5 {
		t.Errorf("slowed down after %d tries, before a person has found a typing error", tries)
	}
	if _, err := a.Login(t.Context(), home, "test", password); !errors.As(err, &throttled) {
		t.Errorf("the right password while throttled: %v", err)
	}
	if err := guess("198.51.100.9"); !errors.Is(err, auth.ErrWrongPassword) {
		t.Errorf("another address: %v", err)
	}
	*now = now.Add(throttled.After)
	if _, err := a.Login(t.Context(), home, "test", password); err != nil {
		t.Errorf("after the wait: %v", err)
	}
	if err := guess(home); !errors.Is(err, auth.ErrWrongPassword) {
		t.Errorf("after a right password the address has its tries again: %v", err)
	}
}

func TestGuessingFromManyAddressesIsBounded(t *testing.T) {
	a, _, _ := open(t)
	firstPassword(t, a)
	checked := 0
	for i := range 100 {
		_, err := a.Login(t.Context(), fmt.Sprintf("198.51.100.%d", i), "test", "wrong")
		if errors.Is(err, auth.ErrWrongPassword) {
			checked++
		}
	}
	if checked < 40 || checked > 70 {
		t.Errorf("%d of 100 guesses from 100 addresses were checked, want about 60", checked)
	}
}

func TestAddressesOfOneIPv6NetworkAreOne(t *testing.T) {
	a, _, _ := open(t)
	firstPassword(t, a)
	for i := range 20 {
		_, err := a.Login(t.Context(), fmt.Sprintf("2001:db8:1:2::%x", i), "test", "wrong")
		if _, ok := errors.AsType[*auth.ThrottledError](err); ok {
			return
		}
	}
	t.Error("20 addresses of one /64 were never throttled")
}

func TestDefaultCostIsThatOfOWASP(t *testing.T) {
	if c := auth.DefaultCost(); c.Passes < 2 || c.Memory < 19*1024 {
		t.Errorf("cost %+v is below OWASP's recommendation", c)
	}
}
