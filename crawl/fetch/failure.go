package fetch

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"syscall"

	"vesti.nixg.ru/crawl"
	"vesti.nixg.ru/ledger"
)

// failure is the typed error for a hop that got no usable answer.
func (ch *chain) failure(ctx context.Context, at *phase, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	cause, what := classify(at, err)
	message := ch.url.Host + ": " + what
	if ch.hops > 0 {
		message = fmt.Sprintf("%s redirects to %s: %s", ch.first.Host, where(ch.url.String()), what)
	}
	return &crawl.Error{Cause: cause, Message: message, Err: err}
}

// classify tells the kinds of failures apart, the more telling ones first.
func classify(at *phase, err error) (ledger.Cause, string) {
	if blocked, ok := errors.AsType[*blockedError](err); ok {
		return ledger.CauseBlocked, blocked.Error()
	}
	if isTimeout(err) {
		return ledger.CauseTimeout, "timeout while " + at.String()
	}
	if dns, ok := errors.AsType[*net.DNSError](err); ok {
		if dns.IsNotFound {
			return ledger.CauseDNS, "the host name does not exist"
		}
		return ledger.CauseDNS, "the host name cannot be resolved now: " + dns.Err
	}
	if what, ok := tlsFailure(err); ok {
		return ledger.CauseTLS, what
	}
	if at.Load() == phaseTLS {
		return ledger.CauseTLS, "the TLS handshake failed: " + err.Error()
	}
	return ledger.CauseConnect, connectFailure(err)
}

func isTimeout(err error) bool {
	var timeout net.Error
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded) ||
		errors.As(err, &timeout) && timeout.Timeout()
}

func tlsFailure(err error) (string, bool) {
	var (
		unknown x509.UnknownAuthorityError
		host    x509.HostnameError
		invalid x509.CertificateInvalidError
		verify  *tls.CertificateVerificationError
		record  tls.RecordHeaderError
		alert   tls.AlertError
	)
	switch {
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return "the TLS certificate has expired or is not valid yet", true
	case errors.As(err, &host):
		return "the TLS certificate is for another host", true
	case errors.As(err, &unknown):
		return "the TLS certificate is signed by an unknown authority", true
	case errors.As(err, &invalid), errors.As(err, &verify):
		return "the TLS certificate is not valid: " + err.Error(), true
	case errors.As(err, &record), errors.Is(err, http.ErrSchemeMismatch):
		return "no TLS is spoken on this port", true
	case errors.As(err, &alert):
		return "the TLS handshake was refused: " + alert.Error(), true
	default:
		return "", false
	}
}

func connectFailure(err error) string {
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return "the connection was refused"
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return "the connection was reset"
	case errors.Is(err, syscall.ENETUNREACH), errors.Is(err, syscall.EHOSTUNREACH):
		return "the host cannot be reached"
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return "the connection was closed in mid-answer (unexpected EOF)"
	default:
		return "the exchange failed: " + err.Error()
	}
}
