//go:build !notelegram

package mtproto_test

import (
	"bytes"
	"crypto/aes"
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha512"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gotd/ige"
	"github.com/gotd/td/bin"
	"github.com/gotd/td/crypto"
	"golang.org/x/crypto/pbkdf2"

	"vesti.nixg.ru/crawl/telegram/mtproto"
	"vesti.nixg.ru/ledger"
)

func TestImportFromTelethon(t *testing.T) {
	w := bareWorld(t, newServer(t))
	w.server.add(portChannel(1, 3))
	key := w.knownKey()
	b := []byte{dc, 127, 0, 0, 1}
	b = binary.BigEndian.AppendUint16(b, uint16(w.server.addr.Port))
	b = append(b, key[:]...)
	self, err := w.account.ImportTelethon(t.Context(), " 1"+base64.URLEncoding.EncodeToString(b)+"\n")
	if err != nil {
		t.Fatal(err)
	}
	if self.ID != userID {
		t.Errorf("session of %+v", self)
	}
	if rep := w.mustCrawl(); rep.New != 3 {
		t.Errorf("report %+v", rep)
	}
	if _, err := w.account.ImportTelethon(t.Context(), "1abc"); !errors.Is(err, ledger.ErrInvalid) {
		t.Errorf("a broken string: %v", err)
	}
}

func TestImportOfASessionThatWasEnded(t *testing.T) {
	w := bareWorld(t, newServer(t))
	key := w.knownKey()
	w.server.set(func() { clear(w.server.authed) })
	_, err := w.account.ImportDesktop(t.Context(), writeTData(t, key, nil), nil)
	if err == nil || !strings.Contains(err.Error(), "is not accepted") {
		t.Errorf("error %v", err)
	}
	if st := w.status(); st.State != mtproto.StateNeedsLogin {
		t.Errorf("status %+v", st)
	}
}

func TestImportFromTelegramDesktop(t *testing.T) {
	for name, passcode := range map[string][]byte{"without passcode": nil, "with passcode": []byte("якорь")} {
		t.Run(name, func(t *testing.T) {
			w := bareWorld(t, newServer(t))
			w.server.add(portChannel(1, 3))
			dir := writeTData(t, w.knownKey(), passcode)
			if passcode != nil {
				if _, err := w.account.ImportDesktop(t.Context(), dir, []byte("не тот")); err == nil {
					t.Error("a wrong passcode was taken")
				}
			}
			self, err := w.account.ImportDesktop(t.Context(), dir, passcode)
			if err != nil {
				t.Fatal(err)
			}
			if self.ID != userID {
				t.Errorf("session of %+v", self)
			}
			if rep := w.mustCrawl(); rep.New != 3 {
				t.Errorf("report %+v", rep)
			}
		})
	}
	w := bareWorld(t, newServer(t))
	if _, err := w.account.ImportDesktop(t.Context(), filepath.Join(t.TempDir(), "none"), nil); !errors.Is(err, ledger.ErrInvalid) {
		t.Errorf("no such folder: %v", err)
	}
}

// knownKey is a key that is logged in at the world's server.
func (w *world) knownKey() crypto.Key {
	w.t.Helper()
	s := loggedIn()
	w.server.set(func() { w.server.authed[s.key] = true })
	return authKey(w.t, s.current)
}

// writeTData writes the folder tdata of a Telegram Desktop with one account:
// files of Qt arrays, encrypted with a local key that a passcode protects.
func writeTData(t *testing.T, authKey crypto.Key, passcode []byte) string {
	t.Helper()
	salt := bytes.Repeat([]byte{7}, 32)
	var local crypto.Key
	for i := range local {
		local[i] = byte(i * 3)
	}
	rounds := 1
	if len(passcode) > 0 {
		rounds = 100_000
	}
	h := sha512.Sum512(bytes.Join([][]byte{salt, passcode, salt}, nil))
	protect := crypto.Key(pbkdf2.Key(h[:], salt, rounds, len(local), sha512.New))

	inner := binary.LittleEndian.AppendUint32(nil, uint32(len(local)))
	inner = append(inner, local[:]...)
	info := []byte{16, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0}
	keyData := array(salt)
	keyData = append(keyData, array(seal(padded(inner), protect))...)
	keyData = append(keyData, array(seal(padded(info), local))...)

	var auth []byte
	for _, v := range []uint32{0x4b, 0, uint32(userID), dc, 1, dc} {
		auth = binary.BigEndian.AppendUint32(auth, v)
	}
	auth = append(auth, authKey[:]...)
	account := binary.BigEndian.AppendUint32(nil, uint32(len(auth)))
	account = append(account, auth...)

	dir := t.TempDir()
	for name, body := range map[string][]byte{
		"key_datas":         keyData,
		"D877F783D5D3EF8Cs": array(seal(padded(account), local)),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), tdf(body), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func array(b []byte) []byte {
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(b))), b...)
}

func padded(b []byte) []byte {
	return append(bytes.Clone(b), make([]byte, (aes.BlockSize-len(b)%aes.BlockSize)%aes.BlockSize)...)
}

// seal encrypts as Telegram Desktop does: AES-IGE with the old key derivation.
func seal(plain []byte, key crypto.Key) []byte {
	sum := sha1.Sum(plain)
	msgKey := bin.Int128(sum[:16])
	aesKey, iv := crypto.OldKeys(key, msgKey, crypto.Server)
	block, err := aes.NewCipher(aesKey[:])
	if err != nil {
		panic(err)
	}
	out := make([]byte, len(plain))
	ige.EncryptBlocks(block, iv[:], out, plain)
	return append(msgKey[:], out...)
}

// tdf is a file with its magic, version and hash.
func tdf(body []byte) []byte {
	version := []byte{1, 0, 0, 0}
	length := binary.LittleEndian.AppendUint32(nil, uint32(len(body)))
	hash := md5.Sum(bytes.Join([][]byte{body, length, version, []byte("TDF$")}, nil))
	return bytes.Join([][]byte{[]byte("TDF$"), version, body, hash[:]}, nil)
}
