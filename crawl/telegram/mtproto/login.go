//go:build !notelegram

package mtproto

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/gotd/td/session"
	"github.com/gotd/td/session/tdesktop"
	gotd "github.com/gotd/td/telegram"
	"github.com/gotd/td/telegram/auth"
	"github.com/gotd/td/tg"
	"github.com/gotd/td/tgerr"

	"vesti.nixg.ru/ledger"
)

// promptRounds is how often a wrong code or password may be given.
const promptRounds = 3

// Login logs in with a telephone number, the code that Telegram sends, and the
// second factor where there is one. The session is stored when Telegram has
// accepted all of it, not before. A session that works is not replaced: the
// error is ErrLoggedIn.
func (a *Account) Login(ctx context.Context, ask Prompter) (Identity, error) {
	return a.adopt(ctx, &session.StorageMemory{}, func(ctx context.Context, c *gotd.Client) error {
		return signIn(ctx, c.Auth(), ask)
	})
}

// ImportTelethon takes over a session of Telethon, given as its StringSession.
// Whatever used it must have stopped: Telegram ends sessions that are used from
// two places.
func (a *Account) ImportTelethon(ctx context.Context, stringSession string) (Identity, error) {
	data, err := session.TelethonSession(strings.TrimSpace(stringSession))
	if err != nil {
		return Identity{}, fmt.Errorf("%w: this is no StringSession of Telethon: %w", ledger.ErrInvalid, err)
	}
	return a.importData(ctx, data)
}

// ImportDesktop takes over a session of Telegram Desktop from its folder tdata.
// passcode is the local one, nil for none. Of several accounts it takes the
// first. Telegram Desktop must not run on it any more.
func (a *Account) ImportDesktop(ctx context.Context, tdata string, passcode []byte) (Identity, error) {
	if info, err := os.Stat(tdata); err != nil || !info.IsDir() {
		return Identity{}, fmt.Errorf("%w: %s is not a folder tdata of Telegram Desktop", ledger.ErrInvalid, tdata)
	}
	accounts, err := tdesktop.Read(tdata, passcode)
	if err != nil {
		return Identity{}, fmt.Errorf("read Telegram Desktop's folder %s: %w", tdata, err)
	}
	if len(accounts) == 0 {
		return Identity{}, fmt.Errorf("%w: no account in %s", ledger.ErrNotFound, tdata)
	}
	data, err := session.TDesktopSession(accounts[0])
	if err != nil {
		return Identity{}, fmt.Errorf("session of Telegram Desktop in %s: %w", tdata, err)
	}
	return a.importData(ctx, data)
}

func (a *Account) importData(ctx context.Context, data *session.Data) (Identity, error) {
	mem := &session.StorageMemory{}
	if err := (&session.Loader{Storage: mem}).Save(ctx, data); err != nil {
		return Identity{}, fmt.Errorf("imported session: %w", err)
	}
	return a.adopt(ctx, mem, func(context.Context, *gotd.Client) error { return nil })
}

// adopt makes the session in mem the account's, if Telegram says whose it is
// after authorise.
func (a *Account) adopt(ctx context.Context, mem *session.StorageMemory, authorise func(context.Context, *gotd.Client) error) (Identity, error) {
	a.login.Lock()
	defer a.login.Unlock()
	if a.opts.APIID == 0 {
		return Identity{}, ErrNoAPI
	}
	old, err := a.vault.load(ctx)
	if err != nil {
		return Identity{}, err
	}
	if old.raw != nil && old.broken == nil && old.refused == nil {
		return Identity{}, fmt.Errorf("%w (as %s)", ErrLoggedIn, old.self.Name)
	}
	self, err := a.authorised(ctx, a.client(mem), authorise)
	if err != nil {
		return Identity{}, err
	}
	raw, err := mem.LoadSession(ctx)
	if err != nil {
		return Identity{}, fmt.Errorf("session after the login: %w", err)
	}
	a.disconnect()
	if err := a.vault.replace(ctx, raw, self); err != nil {
		return Identity{}, err
	}
	return self, nil
}

// authorised runs a client until it is known whose session it has.
func (a *Account) authorised(ctx context.Context, c *gotd.Client, authorise func(context.Context, *gotd.Client) error) (Identity, error) {
	var self *Identity
	run, stop := context.WithCancelCause(ctx) // gotd tries to connect without end
	defer stop(nil)
	late := time.AfterFunc(a.opts.ConnectTimeout, func() { stop(a.unreachable()) })
	err := c.Run(run, func(ctx context.Context) error {
		late.Stop()
		if err := authorise(ctx, c); err != nil {
			return err
		}
		status, err := c.Auth().Status(ctx)
		if err != nil {
			return fmt.Errorf("ask Telegram whose session it is: %w", err)
		}
		if !status.Authorized {
			return errors.New("the session is not accepted: it was ended, or nobody has logged in with it")
		}
		if status.User.Bot {
			return errors.New("the session is a bot's, and bots cannot read channels: log in with a user's account")
		}
		self = a.identityOf(status.User)
		return nil
	})
	switch {
	case self == nil && run.Err() != nil:
		return Identity{}, context.Cause(run)
	case err != nil:
		return Identity{}, a.loginError(err)
	case self == nil: // gotd's Run says nothing of a connection that it lost
		return Identity{}, errors.New("the connection to Telegram was lost: try again")
	}
	return *self, nil
}

func (a *Account) identityOf(u *tg.User) *Identity {
	name := strings.TrimSpace(u.FirstName + " " + u.LastName)
	if name == "" {
		name = u.Username
	}
	if name == "" {
		name = fmt.Sprintf("account %d", u.ID)
	}
	return &Identity{ID: u.ID, Name: name, Username: u.Username, Since: a.opts.Now().UTC()}
}

// loginError says what can be done about Telegram's answer.
func (a *Account) loginError(err error) error {
	rpc, ok := tgerr.As(err)
	switch {
	case !ok && (errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)): // of gotd's own
		return fmt.Errorf("no answer from Telegram: try again: %w", err)
	case !ok:
		return err
	}
	if reason, refused := a.refusal(rpc); refused {
		return fmt.Errorf("%s: %w", reason, err)
	}
	switch {
	case rpc.Code == 420:
		return fmt.Errorf("wait %d s before another try, Telegram asks: %w", rpc.Argument, err)
	case rpc.IsOneOf("PHONE_NUMBER_INVALID", "PHONE_NUMBER_UNOCCUPIED"):
		return fmt.Errorf("no account has this number (give it in international form, +49…): %w", err)
	}
	return err
}

// Logout ends the session at Telegram and removes it, with its copy. Where
// Telegram cannot be asked, or does not know the session any more, it is
// removed all the same; the error is then of the asking.
func (a *Account) Logout(ctx context.Context) error {
	a.login.Lock()
	defer a.login.Unlock()
	s, err := a.vault.load(ctx)
	if err != nil {
		return err
	}
	if s.raw == nil {
		return ErrNoSession
	}
	a.disconnect()
	var asked error
	if s.broken == nil && a.opts.APIID != 0 {
		asked = a.logOut(ctx, s)
	}
	if err := a.vault.clear(ctx); err != nil {
		return err
	}
	if asked != nil {
		return fmt.Errorf("the session was removed here, but Telegram could not be told (end it in the Telegram app under Devices): %w", asked)
	}
	return nil
}

func (a *Account) logOut(ctx context.Context, s state) error {
	ctx, cancel := context.WithTimeout(ctx, a.opts.ConnectTimeout)
	defer cancel()
	mem := &session.StorageMemory{}
	if err := mem.StoreSession(ctx, s.raw); err != nil {
		return err
	}
	c := a.client(mem)
	told := false
	err := c.Run(ctx, func(ctx context.Context) error {
		_, err := c.API().AuthLogOut(ctx)
		if err != nil && !auth.IsUnauthorized(err) {
			return err
		}
		told = true
		return nil
	})
	if told || auth.IsUnauthorized(err) {
		return nil
	}
	if err == nil {
		err = errors.New("the connection was lost")
	}
	return err
}

// disconnect ends the connection on the stored session, if there is one.
func (a *Account) disconnect() {
	a.mu.Lock()
	l := a.link
	a.link = nil
	a.mu.Unlock()
	l.stop()
}

// signIn is the dialogue of a login.
func signIn(ctx context.Context, c *auth.Client, ask Prompter) error {
	phone, err := ask.Phone(ctx)
	if err != nil {
		return err
	}
	phone = strings.Map(func(r rune) rune {
		if r == ' ' || r == '-' || r == '(' || r == ')' {
			return -1
		}
		return r
	}, phone)
	sent, err := c.SendCode(ctx, phone, auth.SendCodeOptions{})
	if err != nil {
		return err
	}
	code, ok := sent.(*tg.AuthSentCode)
	if !ok {
		if _, done := sent.(*tg.AuthSentCodeSuccess); done {
			return nil
		}
		return fmt.Errorf("this kind of login is not supported (%s)", sent.TypeName())
	}
	for round := range promptRounds {
		answer, err := ask.Code(ctx, sentBy(code.Type), round > 0)
		if err != nil {
			return err
		}
		_, err = c.SignIn(ctx, phone, strings.TrimSpace(answer), code.PhoneCodeHash)
		var unknown *auth.SignUpRequired
		switch {
		case errors.Is(err, auth.ErrPasswordAuthNeeded):
			return givePassword(ctx, c, ask)
		case errors.As(err, &unknown):
			return errors.New("there is no Telegram account with this number: make one in the Telegram app first")
		case !tgerr.Is(err, "PHONE_CODE_INVALID", "PHONE_CODE_EMPTY") || round == promptRounds-1:
			return err
		}
	}
	return nil
}

func givePassword(ctx context.Context, c *auth.Client, ask Prompter) error {
	for round := range promptRounds {
		_, err := c.PasswordWith(ctx, func(ctx context.Context, p *tg.AccountPassword) (*tg.InputCheckPasswordSRP, error) {
			password, err := ask.Password(ctx, p.Hint, round > 0)
			if err != nil {
				return nil, err
			}
			return auth.PasswordHash([]byte(password), p.SRPID, p.SRPB, p.SecureRandom, p.CurrentAlgo)
		})
		if !errors.Is(err, auth.ErrPasswordInvalid) || round == promptRounds-1 {
			return err
		}
	}
	return nil
}

func sentBy(t tg.AuthSentCodeTypeClass) string {
	switch t.(type) {
	case *tg.AuthSentCodeTypeApp:
		return "the Telegram app"
	case *tg.AuthSentCodeTypeSMS, *tg.AuthSentCodeTypeSMSWord, *tg.AuthSentCodeTypeSMSPhrase, *tg.AuthSentCodeTypeFirebaseSMS:
		return "SMS"
	case *tg.AuthSentCodeTypeCall, *tg.AuthSentCodeTypeFlashCall, *tg.AuthSentCodeTypeMissedCall:
		return "a telephone call"
	case *tg.AuthSentCodeTypeEmailCode:
		return "e-mail"
	case *tg.AuthSentCodeTypeFragmentSMS:
		return "fragment.com"
	default:
		return "Telegram"
	}
}
