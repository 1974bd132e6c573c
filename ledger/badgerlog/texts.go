package badgerlog

import (
	"fmt"

	"github.com/klauspost/compress/zstd"

	"vesti.nixg.ru/ledger"
)

// The first byte of a stored text says how the rest is packed.
const (
	textPlain = 0
	textZstd  = 1
)

// texts packs and unpacks the texts of posts. It is safe for concurrent use.
type texts struct {
	enc *zstd.Encoder
	dec *zstd.Decoder
}

func newTexts() (*texts, error) {
	enc, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(4),
		zstd.WithEncoderCRC(false), zstd.WithSingleSegment(true), zstd.WithWindowSize(ledger.MaxText))
	if err != nil {
		return nil, fmt.Errorf("text packing: %w", err)
	}
	dec, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(4), zstd.WithDecoderMaxMemory(4*ledger.MaxText))
	if err != nil {
		return nil, fmt.Errorf("text packing: %w", err)
	}
	return &texts{enc, dec}, nil
}

func (t *texts) close() {
	t.dec.Close()
}

// pack returns the stored form of text: compressed where that is shorter.
func (t *texts) pack(text string) []byte {
	out := make([]byte, 1, 1+len(text)/2)
	out[0] = textZstd
	out = t.enc.EncodeAll([]byte(text), out)
	if len(out) < 1+len(text) {
		return out
	}
	return append([]byte{textPlain}, text...)
}

var errText = fmt.Errorf("stored text %w", ledger.ErrUnreadable)

// unpack returns the text; size is its length where that is known, else 0.
func (t *texts) unpack(b []byte, size int) (string, error) {
	if len(b) == 0 {
		return "", errText
	}
	switch b[0] {
	case textPlain:
		return string(b[1:]), nil
	case textZstd:
		out, err := t.dec.DecodeAll(b[1:], make([]byte, 0, min(size, ledger.MaxText)))
		if err != nil {
			return "", fmt.Errorf("%w: %w", errText, err)
		}
		return string(out), nil
	default:
		return "", errText
	}
}
