package auth

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"golang.org/x/crypto/argon2"
	"golang.org/x/text/unicode/norm"
)

// Cost is what computing a password's hash by argon2id takes.
type Cost struct {
	Passes uint32
	Memory uint32 // KiB
}

// DefaultCost is OWASP's second choice for argon2id: two passes over 19 MiB,
// about 40 ms of a core.
func DefaultCost() Cost { return Cost{Passes: 2, Memory: 19 * 1024} }

const (
	argonThreads = 1
	argonKey     = 32
	argonSalt    = 16
	maxHashing   = 2 // at once
)

// MinPassword and MaxPassword are the lengths that a new password may have, in
// characters.
const (
	MinPassword = 10
	MaxPassword = 200
)

func checkStrength(password string) error {
	if n := utf8.RuneCountInString(password); n < MinPassword || n > MaxPassword {
		return fmt.Errorf("%w: want %d to %d characters", ErrWeakPassword, MinPassword, MaxPassword)
	}
	return nil
}

// hash returns the PHC form of the password's hash.
func (a *Accounts) hash(ctx context.Context, password string) (string, error) {
	salt := make([]byte, argonSalt)
	_, _ = rand.Read(salt) // never fails
	p := argonParams{time: a.cost.Passes, memory: a.cost.Memory, threads: argonThreads, salt: salt}
	key, err := a.derive(ctx, p, password, argonKey)
	if err != nil {
		return "", err
	}
	enc := base64.RawStdEncoding
	return fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=%d$%s$%s", argon2.Version, p.memory, p.time, p.threads,
		enc.EncodeToString(salt), enc.EncodeToString(key)), nil
}

// compare returns ErrWrongPassword unless stored is the hash of password.
func (a *Accounts) compare(ctx context.Context, stored, password string) error {
	p, want, err := parsePHC(stored)
	if err != nil {
		return err
	}
	if utf8.RuneCountInString(password) > MaxPassword {
		return ErrWrongPassword
	}
	got, err := a.derive(ctx, p, password, len(want))
	if err != nil {
		return err
	}
	if subtle.ConstantTimeCompare(got, want) != 1 {
		return ErrWrongPassword
	}
	return nil
}

type argonParams struct {
	time, memory uint32
	threads      uint8
	salt         []byte
}

// derive waits for its turn and computes the key. The same characters typed on
// another keyboard may come decomposed, hence NFC.
func (a *Accounts) derive(ctx context.Context, p argonParams, password string, length int) ([]byte, error) {
	select {
	case a.hashing <- struct{}{}:
		defer func() { <-a.hashing }()
	case <-ctx.Done():
		return nil, fmt.Errorf("hash the password: %w", ctx.Err())
	}
	return argon2.IDKey(norm.NFC.Bytes([]byte(password)), p.salt, p.time, p.memory, p.threads, uint32(length)), nil
}

var errPHC = errors.New("stored password hash cannot be read")

func parsePHC(s string) (argonParams, []byte, error) {
	var p argonParams
	parts := strings.Split(s, "$")
	if len(parts) != 6 || parts[0] != "" || parts[1] != "argon2id" || parts[2] != fmt.Sprintf("v=%d", argon2.Version) {
		return p, nil, errPHC
	}
	if _, err := fmt.Sscanf(parts[3], "m=%d,t=%d,p=%d", &p.memory, &p.time, &p.threads); err != nil {
		return p, nil, fmt.Errorf("%w: %w", errPHC, err)
	}
	salt, err := base64.RawStdEncoding.DecodeString(parts[4])
	if err != nil {
		return p, nil, fmt.Errorf("%w: %w", errPHC, err)
	}
	key, err := base64.RawStdEncoding.DecodeString(parts[5])
	if err != nil || len(key) == 0 {
		return p, nil, errPHC
	}
	p.salt = salt
	return p, key, nil
}
