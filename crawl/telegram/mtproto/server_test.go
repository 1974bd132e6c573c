//go:build !notelegram

package mtproto_test

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"errors"
	"fmt"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/gotd/td/bin"
	"github.com/gotd/td/mt"
	"github.com/gotd/td/tg"
	"github.com/gotd/td/tgerr"
	"github.com/gotd/td/tgtest"
	"github.com/gotd/td/transport"

	"vesti.nixg.ru/crawl/telegram/mtproto"
)

// What Telegram knows in these tests.
const (
	userID   = int64(777000111)
	phone    = "+4915100000000"
	code     = "12345"
	password = "гавань"
	dc       = 2
)

// server is what one test sees of an MTProto server: its channels and what goes
// wrong. Tests share the server below it, since making keys takes seconds, and
// are told apart by their api_id.
type server struct {
	*mux
	apiID int

	mu       sync.Mutex
	channels map[int64]*channel
	names    map[string]int64
	authed   map[[8]byte]bool
	needs2FA map[[8]byte]*srpServer
	calls    map[string]int // by method
	effect   func(call) effect
	latency  time.Duration
	refuse   *tgerr.Error // for every call that needs a login
	bot      bool
	signIn   *tgerr.Error
}

// mux is an MTProto server over TCP. The protocol is gotd's; the methods that
// reading channels and logging in need are the tests' own.
type mux struct {
	key  *rsa.PrivateKey
	addr *net.TCPAddr
	srv  *tgtest.Server
	stop func()

	mu       sync.Mutex
	servers  map[int]*server   // by api_id
	sessions map[int64]*server // by MTProto session
}

// call is a request that the server got.
type call struct {
	method  string
	n       int // of this method, from 1
	channel int64
}

// effect is what goes wrong with a call; the zero effect is nothing.
type effect struct {
	err   *tgerr.Error
	ack   bool          // acknowledge the request first
	drop  bool          // drop the connection in place of an answer
	mute  bool          // never answer
	after time.Duration // answer late
}

// shared is the server of all tests that do not break it, and the session of
// somebody who has logged in there.
var shared = sync.OnceValue(func() *mux { return startMux() })

// newServer returns a server of the test's own on the shared one.
func newServer(t testing.TB) *server {
	t.Helper()
	return shared().server()
}

// newOwnServer starts a server that the test may break. A test that logs in and
// is parallel needs one: tgtest does not guard its list of sessions well enough
// against new keys.
func newOwnServer(t testing.TB) *server {
	t.Helper()
	m := startMux()
	t.Cleanup(func() { m.stop() })
	return m.server()
}

func startMux() *mux {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	m := &mux{key: key, servers: map[int]*server{}, sessions: map[int64]*server{}}
	m.listen("127.0.0.1:0")
	return m
}

func (m *mux) server() *server {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := &server{
		mux:      m,
		apiID:    len(m.servers) + 1,
		channels: map[int64]*channel{},
		names:    map[string]int64{},
		authed:   map[[8]byte]bool{},
		needs2FA: map[[8]byte]*srpServer{},
		calls:    map[string]int{},
	}
	m.servers[s.apiID] = s
	return s
}

func (m *mux) listen(addr string) {
	l, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", addr)
	if err != nil {
		panic(err)
	}
	m.addr = l.Addr().(*net.TCPAddr)
	ctx, cancel := context.WithCancel(context.Background())
	m.srv = tgtest.NewServer(tgtest.NewPrivateKey(m.key), m, tgtest.ServerOptions{DC: dc})
	done := make(chan struct{})
	go func() {
		defer close(done)
		m.srv.Serve(ctx, transport.ListenCodec(nil, l))
	}()
	m.stop = func() {
		cancel()
		l.Close()
		<-done
	}
}

// restart stands for a server that has forgotten all keys.
func (m *mux) restart() {
	m.stop()
	m.listen(m.addr.String())
}

// OnMessage implements tgtest.Handler: the first request of each connection
// names the api_id.
func (m *mux) OnMessage(srv *tgtest.Server, req *tgtest.Request) error {
	apiID, err := apiIDOf(&bin.Buffer{Buf: req.Buf.Copy()})
	if err != nil {
		return err
	}
	m.mu.Lock()
	if apiID != 0 {
		m.sessions[req.Session.ID] = m.servers[apiID]
	}
	s := m.sessions[req.Session.ID]
	m.mu.Unlock()
	if s == nil {
		return nil // an acknowledgement before the first request
	}
	return tgtest.UnpackInvoke(s).OnMessage(srv, req)
}

// apiIDOf unwraps a request as far as the one that opens a connection; 0 where
// it is another.
func apiIDOf(b *bin.Buffer) (int, error) {
	for {
		id, err := b.PeekID()
		if err != nil {
			return 0, err
		}
		switch id {
		case tg.InvokeWithLayerRequestTypeID:
			err = (&tg.InvokeWithLayerRequest{Query: bare{}}).Decode(b)
		case tg.InvokeWithoutUpdatesRequestTypeID:
			err = (&tg.InvokeWithoutUpdatesRequest{Query: bare{}}).Decode(b)
		case tg.InitConnectionRequestTypeID:
			r := tg.InitConnectionRequest{Query: bare{}}
			err = r.Decode(b)
			return r.APIID, err
		default:
			return 0, nil
		}
		if err != nil {
			return 0, err
		}
	}
}

// bare leaves a wrapped query in the buffer.
type bare struct{}

func (bare) Decode(*bin.Buffer) error { return nil }
func (bare) Encode(*bin.Buffer) error { return errors.New("only for reading") }

func (s *server) options() *mtproto.Server {
	return &mtproto.Server{DC: dc, Host: s.addr.IP.String(), Port: s.addr.Port, Key: &s.key.PublicKey}
}

// on makes calls go wrong; nil for none. It starts the counts of calls anew.
func (s *server) on(f func(call) effect) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.effect, s.calls = f, map[string]int{}
}

func (s *server) count(method string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls[method]
}

func (s *server) set(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

// OnMessage implements tgtest.Handler. It runs for one message of a connection
// after the other and must not wait.
func (s *server) OnMessage(srv *tgtest.Server, req *tgtest.Request) error {
	id, err := req.Buf.PeekID()
	if err != nil {
		return err
	}
	if id == mt.MsgsAckTypeID {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	answer, c, err := s.handle(id, req)
	var rpc *tgerr.Error
	if err != nil && !errors.As(err, &rpc) {
		return err
	}
	s.calls[c.method]++
	c.n = s.calls[c.method]
	var e effect
	if s.effect != nil {
		e = s.effect(c)
	}
	if e.err != nil {
		rpc = e.err
	}
	if e.ack {
		if err := srv.SendAck(req.RequestCtx, req.Session, req.MsgID); err != nil {
			return err
		}
	}
	switch {
	case e.mute:
		return nil
	case e.drop:
		srv.ForceDisconnect(req.Session)
		return nil
	}
	send := func() error {
		if rpc != nil {
			return srv.SendErr(req, rpc)
		}
		return srv.SendGZIP(req, answer)
	}
	if wait := max(e.after, s.latency); wait > 0 {
		late := *req
		time.AfterFunc(wait, func() { sendLate(srv, &late, rpc, answer) })
		return nil
	}
	return send()
}

func sendLate(srv *tgtest.Server, req *tgtest.Request, rpc *tgerr.Error, answer bin.Encoder) {
	req.RequestCtx = context.WithoutCancel(req.RequestCtx)
	if rpc != nil {
		srv.SendErr(req, rpc) // the client may be gone
		return
	}
	srv.SendGZIP(req, answer)
}

// handle carries a request out. s.mu is held.
func (s *server) handle(id uint32, req *tgtest.Request) (bin.Encoder, call, error) {
	key := req.Session.AuthKey.ID
	switch id {
	case tg.HelpGetConfigRequestTypeID:
		return &tg.Config{ThisDC: dc, DCOptions: []tg.DCOption{{ID: dc, IPAddress: s.addr.IP.String(), Port: s.addr.Port}}}, call{method: "help.getConfig"}, nil
	case tg.AuthSendCodeRequestTypeID, tg.AuthSignInRequestTypeID, tg.AccountGetPasswordRequestTypeID,
		tg.AuthCheckPasswordRequestTypeID:
		return s.login(id, key, req.Buf)
	}
	if s.refuse != nil {
		return nil, call{method: "refused"}, s.refuse
	}
	if !s.authed[key] {
		return nil, call{method: "refused"}, tgerr.New(401, "AUTH_KEY_UNREGISTERED")
	}
	switch id {
	case tg.UsersGetUsersRequestTypeID:
		return &tg.UserClassVector{Elems: []tg.UserClass{s.self()}}, call{method: "users.getUsers"}, nil
	case tg.AuthLogOutRequestTypeID:
		delete(s.authed, key)
		return &tg.AuthLoggedOut{}, call{method: "auth.logOut"}, nil
	case tg.ContactsResolveUsernameRequestTypeID:
		return s.resolve(req.Buf)
	case tg.MessagesGetHistoryRequestTypeID:
		return s.history(req.Buf)
	case tg.ChannelsGetMessagesRequestTypeID:
		return s.messages(req.Buf)
	}
	return nil, call{method: "unknown"}, tgerr.New(400, fmt.Sprintf("METHOD_INVALID_%x", id))
}

// onlyKey is the key of the only login.
func (s *server) onlyKey() [8]byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key := range s.authed {
		return key
	}
	panic("nobody has logged in")
}

func (s *server) self() *tg.User {
	u := &tg.User{ID: userID, Self: true, AccessHash: 5, FirstName: "Вахтенный", Username: "watch", Bot: s.bot}
	u.SetFlags()
	return u
}
