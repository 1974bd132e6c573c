//go:build !notelegram

package mtproto_test

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"math/big"

	"github.com/gotd/td/bin"
	"github.com/gotd/td/crypto/srp"
	"github.com/gotd/td/tg"
	"github.com/gotd/td/tgerr"
)

// login carries out the methods of a login. s.mu is held.
func (s *server) login(id uint32, key [8]byte, buf *bin.Buffer) (bin.Encoder, call, error) {
	switch id {
	case tg.AuthSendCodeRequestTypeID:
		c := call{method: "auth.sendCode"}
		var r tg.AuthSendCodeRequest
		if err := r.Decode(buf); err != nil {
			return nil, c, err
		}
		if s.signIn != nil {
			return nil, c, s.signIn
		}
		if r.PhoneNumber != phone {
			return nil, c, tgerr.New(400, "PHONE_NUMBER_INVALID")
		}
		return &tg.AuthSentCode{Type: &tg.AuthSentCodeTypeApp{Length: len(code)}, PhoneCodeHash: "hash"}, c, nil
	case tg.AuthSignInRequestTypeID:
		c := call{method: "auth.signIn"}
		var r tg.AuthSignInRequest
		if err := r.Decode(buf); err != nil {
			return nil, c, err
		}
		if r.PhoneCode != code || r.PhoneCodeHash != "hash" {
			return nil, c, tgerr.New(400, "PHONE_CODE_INVALID")
		}
		s.needs2FA[key] = newSRPServer(password)
		return nil, c, tgerr.New(401, "SESSION_PASSWORD_NEEDED")
	case tg.AccountGetPasswordRequestTypeID:
		p := s.needs2FA[key]
		if p == nil {
			return nil, call{method: "account.getPassword"}, tgerr.New(401, "AUTH_KEY_UNREGISTERED")
		}
		return p.challenge(), call{method: "account.getPassword"}, nil
	default:
		c := call{method: "auth.checkPassword"}
		var r tg.AuthCheckPasswordRequest
		if err := r.Decode(buf); err != nil {
			return nil, c, err
		}
		answer, ok := r.Password.(*tg.InputCheckPasswordSRP)
		if !ok || s.needs2FA[key] == nil || !s.needs2FA[key].check(answer) {
			return nil, c, tgerr.New(400, "PASSWORD_HASH_INVALID")
		}
		delete(s.needs2FA, key)
		s.authed[key] = true
		return &tg.AuthAuthorization{User: s.self()}, c, nil
	}
}

// srpServer is the server's side of https://core.telegram.org/api/srp.
type srpServer struct {
	algo *tg.PasswordKdfAlgoSHA256SHA256PBKDF2HMACSHA512iter100000SHA256ModPow
	p, v *big.Int
	b    *big.Int
	gb   []byte
}

// primeHex is the prime that Telegram uses.
const primeHex = "C71CAEB9C6B1C9048E6C522F70F13F73980D40238E3E21C14934D037563D930F" +
	"48198A0AA7C14058229493D22530F4DBFA336F6E0AC925139543AED44CCE7C37" +
	"20FD51F69458705AC68CD4FE6B6B13ABDC9746512969328454F18FAF8C595F64" +
	"2477FE96BB2A941D5BCD1D4AC8CC49880708FA9B378E3C4F3A9060BEE67CF9A4" +
	"A4A695811051907E162753B56B0F6B410DBA74D8A84B2A14B3144E0EF1284754" +
	"FD17ED950D5965B4B9DD46582DB1178D169C6BC465B0D6FF9CA3928FEF5B9AE4" +
	"E418FC15E83EBEA0F87FA9FF5EED70050DED2849F47BF959D956850CE929851F" +
	"0D8115F635B105EE2E4E15D04B2454BF6F4FADF034B10403119CD8E3B92FCC5B"

func newSRPServer(password string) *srpServer {
	prime, err := hex.DecodeString(primeHex)
	if err != nil {
		panic(err)
	}
	in := srp.Input{Salt1: []byte("salt one"), Salt2: []byte("salt two"), G: 3, P: prime}
	verifier, salt1, err := srp.NewSRP(rand.Reader).NewHash([]byte(password), in)
	if err != nil {
		panic(err)
	}
	s := &srpServer{
		algo: &tg.PasswordKdfAlgoSHA256SHA256PBKDF2HMACSHA512iter100000SHA256ModPow{Salt1: salt1, Salt2: in.Salt2, G: in.G, P: prime},
		p:    new(big.Int).SetBytes(prime),
		v:    new(big.Int).SetBytes(verifier),
	}
	secret := make([]byte, 256)
	if _, err := rand.Read(secret); err != nil {
		panic(err)
	}
	s.b = new(big.Int).SetBytes(secret)
	g := big.NewInt(int64(in.G))
	k := new(big.Int).SetBytes(sum(prime, pad(g)))
	gb := new(big.Int).Exp(g, s.b, s.p)
	gb.Add(gb, k.Mul(k, s.v)).Mod(gb, s.p)
	s.gb = pad(gb)
	return s
}

func (s *srpServer) challenge() *tg.AccountPassword {
	p := &tg.AccountPassword{
		HasPassword: true, CurrentAlgo: s.algo, SRPB: s.gb, SRPID: 42, Hint: "где стоят суда",
		NewAlgo: s.algo, NewSecureAlgo: &tg.SecurePasswordKdfAlgoUnknown{}, SecureRandom: make([]byte, 256),
	}
	p.SetFlags()
	return p
}

// check computes M1 as the client must have done.
func (s *srpServer) check(a *tg.InputCheckPasswordSRP) bool {
	ga := new(big.Int).SetBytes(a.A)
	u := new(big.Int).SetBytes(sum(pad(ga), s.gb))
	shared := new(big.Int).Exp(s.v, u, s.p)
	shared.Mul(shared, ga).Mod(shared, s.p).Exp(shared, s.b, s.p)
	hp, hg := sum(s.algo.P), sum(pad(big.NewInt(int64(s.algo.G))))
	for i := range hp {
		hp[i] ^= hg[i]
	}
	m1 := sum(hp, sum(s.algo.Salt1), sum(s.algo.Salt2), pad(ga), s.gb, sum(pad(shared)))
	return a.SRPID == 42 && bytes.Equal(m1, a.M1)
}

func sum(parts ...[]byte) []byte {
	h := sha256.New()
	for _, p := range parts {
		h.Write(p)
	}
	return h.Sum(nil)
}

func pad(n *big.Int) []byte { return n.FillBytes(make([]byte, 256)) }
