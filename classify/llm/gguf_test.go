package llm_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
)

// tinyModel is a language model of random weights in the GGUF format, version 3
// (ggml's docs/gguf.md): two layers of the llama architecture over single bytes,
// half a megabyte. It knows nothing, but a server loads it, feeds it prompts and
// holds it to a grammar like any other.
func tinyModel(seed uint64) []byte {
	const dim, ff, layers, heads = 64, 128, 2, 4
	g := gguf{rnd: rand.New(rand.NewPCG(seed, 0))}
	tokens, types, special := byteVocabulary()
	g.text("general.architecture", "llama")
	g.text("general.name", "tiny")
	g.number("general.alignment", 32)
	for name, n := range map[string]uint32{
		"context_length": 8192, "embedding_length": dim, "block_count": layers, "feed_forward_length": ff,
		"attention.head_count": heads, "attention.head_count_kv": heads, "rope.dimension_count": dim / heads,
		"vocab_size": uint32(len(tokens)),
	} {
		g.number("llama."+name, n)
	}
	g.real("llama.attention.layer_norm_rms_epsilon", 1e-5)
	g.real("llama.rope.freq_base", 10_000)
	g.text("tokenizer.ggml.model", "gpt2")
	g.text("tokenizer.ggml.pre", "qwen2")
	g.texts("tokenizer.ggml.tokens", tokens)
	g.integers("tokenizer.ggml.token_type", types)
	g.texts("tokenizer.ggml.merges", []string{"t h", "e r", "i n", "a n", "o n"})
	g.number("tokenizer.ggml.bos_token_id", special["<|endoftext|>"])
	g.number("tokenizer.ggml.eos_token_id", special["<|im_end|>"])
	g.number("tokenizer.ggml.padding_token_id", special["<|endoftext|>"])
	g.text("tokenizer.chat_template", "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}<|im_start|>assistant\n")

	narrow := 1 / math.Sqrt(dim)
	g.tensor("token_embd.weight", 1, dim, len(tokens))
	g.tensor("output_norm.weight", 0, dim)
	g.tensor("output.weight", narrow, dim, len(tokens))
	for l := range layers {
		block := fmt.Sprintf("blk.%d.", l)
		for _, norm := range []string{"attn_norm", "ffn_norm"} {
			g.tensor(block+norm+".weight", 0, dim)
		}
		for _, square := range []string{"attn_q", "attn_k", "attn_v", "attn_output"} {
			g.tensor(block+square+".weight", narrow, dim, dim)
		}
		g.tensor(block+"ffn_gate.weight", narrow, dim, ff)
		g.tensor(block+"ffn_up.weight", narrow, dim, ff)
		g.tensor(block+"ffn_down.weight", 1/math.Sqrt(ff), ff, dim)
	}
	return g.bytes()
}

// byteVocabulary has a token for each byte, five pairs that are often met, and
// the marks of a chat. Bytes that are no printable Latin-1 stand as characters
// from U+0100 on, as GPT-2 has it.
func byteVocabulary() (tokens []string, types []int32, special map[string]uint32) {
	add := func(token string, kind int32) {
		tokens, types = append(tokens, token), append(types, kind)
	}
	const normal, control, unused = 1, 3, 5
	shifted := rune(256)
	for b := range rune(256) {
		if b > ' ' && b < 127 || b > 160 && b != 173 {
			add(string(b), normal)
			continue
		}
		add(string(shifted), normal)
		shifted++
	}
	for _, pair := range []string{"th", "er", "in", "an", "on"} {
		add(pair, normal)
	}
	special = make(map[string]uint32)
	for _, mark := range []string{"<|endoftext|>", "<|im_start|>", "<|im_end|>"} {
		special[mark] = uint32(len(tokens))
		add(mark, control)
	}
	for len(tokens)%32 != 0 {
		add(fmt.Sprintf("<|unused%d|>", len(tokens)), unused)
	}
	return tokens, types, special
}

// gguf gathers the parts of a file.
type gguf struct {
	rnd     *rand.Rand
	entries uint64
	header  bytes.Buffer // the entries
	tensors uint64
	infos   bytes.Buffer
	data    bytes.Buffer
}

// The types of values.
const (
	typeUint32  = 4
	typeInt32   = 5
	typeFloat32 = 6
	typeString  = 8
	typeArray   = 9
)

func put(b *bytes.Buffer, values ...any) {
	for _, v := range values {
		if s, ok := v.(string); ok {
			put(b, uint64(len(s)))
			b.WriteString(s)
			continue
		}
		if err := binary.Write(b, binary.LittleEndian, v); err != nil {
			panic(err)
		}
	}
}

func (g *gguf) entry(key string, values ...any) {
	g.entries++
	put(&g.header, append([]any{key}, values...)...)
}

func (g *gguf) text(key, v string)          { g.entry(key, uint32(typeString), v) }
func (g *gguf) number(key string, v uint32) { g.entry(key, uint32(typeUint32), v) }
func (g *gguf) real(key string, v float32)  { g.entry(key, uint32(typeFloat32), v) }
func (g *gguf) integers(key string, v []int32) {
	g.entry(key, uint32(typeArray), uint32(typeInt32), uint64(len(v)), v)
}

func (g *gguf) texts(key string, v []string) {
	g.entry(key, uint32(typeArray), uint32(typeString), uint64(len(v)))
	for _, s := range v {
		put(&g.header, s)
	}
}

// tensor adds one of random weights; with spread 0 they are all 1.
func (g *gguf) tensor(name string, spread float64, dims ...int) {
	g.tensors++
	put(&g.infos, name, uint32(len(dims)))
	n := 1
	for _, d := range dims {
		put(&g.infos, uint64(d))
		n *= d
	}
	const float32s = 0
	put(&g.infos, uint32(float32s), uint64(g.data.Len()))
	for range n {
		w := float32(1)
		if spread > 0 {
			w = float32(g.rnd.NormFloat64() * spread)
		}
		put(&g.data, w)
	}
	align(&g.data, 0)
}

func (g *gguf) bytes() []byte {
	var b bytes.Buffer
	b.WriteString("GGUF")
	put(&b, uint32(3), g.tensors, g.entries)
	b.Write(g.header.Bytes())
	b.Write(g.infos.Bytes())
	align(&b, 0)
	b.Write(g.data.Bytes())
	return b.Bytes()
}

// align fills b up to a multiple of 32 bytes.
func align(b *bytes.Buffer, fill byte) {
	for b.Len()%32 != 0 {
		b.WriteByte(fill)
	}
}
