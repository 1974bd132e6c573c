//go:build !notelegram

package mtproto

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"

	"golang.org/x/net/proxy"

	"vesti.nixg.ru/ledger"
)

type dialFunc func(ctx context.Context, network, addr string) (net.Conn, error)

// Dial implements proxy.Dialer.
func (d dialFunc) Dial(network, addr string) (net.Conn, error) {
	return d(context.Background(), network, addr)
}

// DialContext implements proxy.ContextDialer.
func (d dialFunc) DialContext(ctx context.Context, network, addr string) (net.Conn, error) {
	return d(ctx, network, addr)
}

// dialer is how to connect to Telegram: by direct, through the proxy where
// there is one.
func dialer(direct dialFunc, through *url.URL) (dialFunc, error) {
	if direct == nil {
		direct = (&net.Dialer{}).DialContext
	}
	if through == nil {
		return direct, nil
	}
	switch through.Scheme {
	case "socks5", "socks5h":
		d, err := proxy.FromURL(through, direct)
		if err != nil {
			return nil, fmt.Errorf("proxy %s: %w", through.Redacted(), err)
		}
		ctx, ok := d.(proxy.ContextDialer)
		if !ok {
			return nil, fmt.Errorf("%w: proxy %s cannot be used", ledger.ErrInvalid, through.Redacted())
		}
		return ctx.DialContext, nil
	case "http", "https":
		return func(ctx context.Context, network, addr string) (net.Conn, error) {
			return connectThrough(ctx, direct, through, network, addr)
		}, nil
	}
	return nil, fmt.Errorf("%w: proxy %s: want socks5://, http:// or https://", ledger.ErrInvalid, through.Redacted())
}

// connectThrough opens a tunnel by CONNECT, RFC 9110 section 9.3.6. Nothing can
// be lost in the reader's buffer: in MTProto the client speaks first.
func connectThrough(ctx context.Context, direct dialFunc, through *url.URL, network, addr string) (_ net.Conn, err error) {
	conn, err := direct(ctx, network, through.Host)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, conn.Close())
		}
	}()
	if through.Scheme == "https" {
		conn = tls.Client(conn, &tls.Config{ServerName: through.Hostname(), MinVersion: tls.VersionTLS12})
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() }) // it interrupts the write or read, which say so
	defer stop()
	req := &http.Request{Method: http.MethodConnect, URL: &url.URL{Opaque: addr}, Host: addr, Header: http.Header{}}
	if u := through.User; u != nil {
		password, _ := u.Password()
		req.Header.Set("Proxy-Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(u.Username()+":"+password)))
	}
	if err := req.Write(conn); err != nil {
		return nil, fmt.Errorf("ask proxy %s: %w", through.Host, err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(conn), req)
	if err != nil {
		return nil, fmt.Errorf("answer of proxy %s: %w", through.Host, err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("proxy %s refuses a tunnel to %s: %s", through.Host, addr, resp.Status)
	}
	return conn, nil
}
