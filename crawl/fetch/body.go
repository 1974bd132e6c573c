package fetch

import (
	"bufio"
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"

	"vesti.nixg.ru/ledger"
)

// What is asked for. Whatever else comes is decoded as well where it can be.
const acceptEncoding = "gzip, br, deflate"

// The most codings in a row that an answer may have.
const maxCodings = 3

// bodyError: the answer came and is no good.
type bodyError struct {
	cause   ledger.Cause
	message string // goes on from the name of the host
	err     error
}

func (e *bodyError) Error() string { return e.message }

func (e *bodyError) Unwrap() error { return e.err }

// readBody reads and decompresses the answer's body, at most limit bytes of it.
// A longer one is cut where cut says so, else refused.
func readBody(resp *http.Response, limit int64, cut bool) (body []byte, truncated bool, err error) {
	tooLarge := &bodyError{
		cause: ledger.CauseTooLarge, message: fmt.Sprintf("sends more than the size limit of %s", megabytes(limit)),
	}
	if resp.ContentLength > limit && !cut {
		return nil, false, tooLarge
	}
	r, coding, err := decode(resp, limit)
	if errors.Is(err, errPacked) {
		return nil, false, tooLarge
	}
	if err != nil {
		return nil, false, err
	}
	var buf bytes.Buffer
	if resp.ContentLength > 0 && coding == "" {
		buf.Grow(int(min(resp.ContentLength, limit)) + bytes.MinRead)
	}
	n, err := buf.ReadFrom(io.LimitReader(r, limit+1))
	switch {
	case errors.Is(err, errPacked):
		return nil, false, tooLarge
	case n > limit && cut:
		return buf.Bytes()[:limit], true, nil
	case n > limit:
		return nil, false, tooLarge
	case err != nil && coding != "" && isDecodeError(err):
		return nil, false, &bodyError{
			cause: ledger.CauseConnect, err: err,
			message: fmt.Sprintf("sends a broken %s stream after %d bytes: %v", coding, n, err),
		}
	case err != nil:
		return nil, false, err
	}
	return buf.Bytes(), false, nil
}

func megabytes(n int64) string {
	if n < 1<<20 {
		return fmt.Sprintf("%d KiB", n>>10)
	}
	return fmt.Sprintf("%.4g MiB", float64(n)/(1<<20))
}

// errPacked: more than the size limit came before it was unpacked.
var errPacked = errors.New("packed body over the size limit")

// packed is a stream that is to be unpacked, which makes it longer if anything:
// more of it than the limit is refused, however little comes out. Else a few
// kilobytes packed several times over could keep a decoder busy for minutes.
type packed struct {
	r    io.Reader
	left int64
}

// Read implements io.Reader.
func (p *packed) Read(b []byte) (int, error) {
	if p.left <= 0 {
		return 0, errPacked
	}
	n, err := p.r.Read(b[:min(int64(len(b)), p.left)])
	p.left -= int64(n)
	return n, err
}

// decode undoes the answer's codings and returns the name of the last one, ""
// for none. Labels lie in both directions, so the first bytes have a say.
func decode(resp *http.Response, limit int64) (io.Reader, string, error) {
	codings := strings.FieldsFunc(strings.ToLower(strings.Join(resp.Header.Values("Content-Encoding"), ",")),
		func(r rune) bool { return r == ',' || r == ' ' || r == '\t' })
	if len(codings) > maxCodings {
		return nil, "", &bodyError{cause: ledger.CauseHTTP, message: fmt.Sprintf("sends %d content codings in a row", len(codings))}
	}
	r := bufio.NewReader(resp.Body)
	if len(codings) == 0 {
		codings = []string{""}
	}
	undone := ""
	for _, label := range slices.Backward(codings) {
		head, err := r.Peek(4)
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, "", err
		}
		coding := actualCoding(label, head)
		if coding == "" {
			continue
		}
		decoded, err := decoder(coding, bufio.NewReader(&packed{r, limit + 64<<10}))
		if err != nil {
			return nil, "", err
		}
		r, undone = bufio.NewReader(decoded), coding
	}
	return r, undone, nil
}

// actualCoding is how a body that begins with head and is labelled so is
// encoded: the magic numbers of gzip and zstd decide, and what begins like a
// text is one.
func actualCoding(label string, head []byte) string {
	switch {
	case bytes.HasPrefix(head, []byte{0x1F, 0x8B}):
		return "gzip"
	case bytes.HasPrefix(head, []byte{0x28, 0xB5, 0x2F, 0xFD}):
		return "zstd"
	}
	switch label {
	case "br", "deflate":
		if looksLikeText(head) {
			return ""
		}
		return label
	case "", "identity", "gzip", "x-gzip", "zstd", "none", "utf-8", "binary", "8bit":
		return "" // the magic numbers would have told
	default:
		if looksLikeText(head) || len(head) == 0 {
			return ""
		}
		return label
	}
}

// looksLikeText reports whether head begins a document of XML, HTML or JSON in
// some encoding: a bracket, perhaps behind a byte order mark or white space.
func looksLikeText(head []byte) bool {
	for _, bom := range []string{"\xEF\xBB\xBF", "\xFF\xFE", "\xFE\xFF"} {
		if bytes.HasPrefix(head, []byte(bom)) {
			return true
		}
	}
	trimmed := bytes.TrimLeft(head, " \t\r\n\x00")
	return len(head) > 0 && len(trimmed) == 0 || len(trimmed) > 0 && bytes.IndexByte([]byte("<{["), trimmed[0]) >= 0
}

func decoder(coding string, r *bufio.Reader) (io.Reader, error) {
	broken := func(err error) error {
		return &bodyError{
			cause: ledger.CauseConnect, message: fmt.Sprintf("sends a broken %s stream: %v", coding, err), err: err,
		}
	}
	switch coding {
	case "gzip":
		gz, err := gzip.NewReader(r)
		if err != nil {
			return nil, broken(err)
		}
		return &gzipMembers{src: r, gz: gz}, nil
	case "zstd":
		zr, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(8<<20))
		if err != nil {
			return nil, broken(err)
		}
		return zr.IOReadCloser(), nil
	case "br":
		return brotli.NewReader(r), nil
	case "deflate":
		// RFC 9110, section 8.4.1.2: meant is zlib's format, and many send the bare one.
		if head, err := r.Peek(2); err == nil && head[0]&0x0F == 8 && (int(head[0])<<8+int(head[1]))%31 == 0 {
			zr, err := zlib.NewReader(r)
			if err != nil {
				return nil, broken(err)
			}
			return zr, nil
		}
		return flate.NewReader(r), nil
	default:
		return nil, &bodyError{cause: ledger.CauseHTTP, message: fmt.Sprintf("sends the content coding %q, which is not known", coding)}
	}
}

// gzipMembers reads the members of a gzip stream and stops, without an error,
// at anything behind a whole member that is none.
type gzipMembers struct {
	src *bufio.Reader
	gz  *gzip.Reader
}

// Read implements io.Reader.
func (m *gzipMembers) Read(p []byte) (int, error) {
	m.gz.Multistream(false)
	n, err := m.gz.Read(p)
	if !errors.Is(err, io.EOF) {
		return n, err
	}
	head, err := m.src.Peek(2)
	if errors.Is(err, errPacked) {
		return n, err
	}
	if err != nil || head[0] != 0x1F || head[1] != 0x8B {
		return n, io.EOF
	}
	if err := m.gz.Reset(m.src); err != nil {
		return n, err
	}
	return n, nil
}

// isDecodeError tells a stream that is broken from a connection that is.
func isDecodeError(err error) bool {
	var corrupt flate.CorruptInputError
	return errors.Is(err, io.ErrUnexpectedEOF) || errors.As(err, &corrupt) ||
		errors.Is(err, gzip.ErrChecksum) || errors.Is(err, gzip.ErrHeader) ||
		errors.Is(err, zlib.ErrChecksum) || errors.Is(err, zlib.ErrHeader) ||
		errors.Is(err, zstd.ErrMagicMismatch) || strings.HasPrefix(err.Error(), "brotli: ")
}
