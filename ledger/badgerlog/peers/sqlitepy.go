package main

import (
	"bufio"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

//go:embed sqlitepy.py
var sqlitePython string

// pythonStore talks to one Python process, which does its own timing.
type pythonStore struct {
	process *process
	in      *json.Encoder
	out     *bufio.Reader
}

type pythonAnswer struct {
	Posts   int     `json:"posts"`
	Fresh   int     `json:"fresh"`
	Seconds float64 `json:"seconds"`
	Error   string  `json:"error"`
}

func (e *environment) openPython(ctx context.Context, dir string, c class) (store, error) {
	synchronous := "FULL"
	if c == classP {
		synchronous = "NORMAL"
	}
	script := filepath.Join(dir, "sqlitepy.py")
	if err := os.WriteFile(script, []byte(sqlitePython), 0o600); err != nil {
		return nil, fmt.Errorf("write the script: %w", err)
	}
	p := newProcess(ctx, e.python, script, filepath.Join(dir, "posts.db"), synchronous, e.postsFile, sqliteSchema)
	in, err := p.cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("start Python: %w", err)
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("start Python: %w", err)
	}
	if err := p.start(); err != nil {
		return nil, err
	}
	s := &pythonStore{process: p, in: json.NewEncoder(in), out: bufio.NewReaderSize(out, 1<<16)}
	if _, err := s.answer(ctx); err != nil { // it has read the posts
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

func (s *pythonStore) append(ctx context.Context, f *feed, batch int, b budget) (tally, error) {
	t, err := s.ask(ctx, map[string]any{"do": "append", "batch": batch, "posts": b.posts, "seconds": b.time.Seconds()})
	f.next.Add(int64(t.posts))
	return t, err
}

func (s *pythonStore) claim(ctx context.Context, _ mode, b budget) (tally, error) {
	return s.ask(ctx, map[string]any{"do": "claim", "posts": b.posts, "seconds": b.time.Seconds()})
}

func (s *pythonStore) ask(ctx context.Context, question map[string]any) (tally, error) {
	if err := s.in.Encode(question); err != nil {
		return tally{}, fmt.Errorf("ask Python: %w", err)
	}
	a, err := s.answer(ctx)
	return tally{posts: a.Posts, fresh: a.Fresh, elapsed: seconds(a.Seconds)}, err
}

// answer reads one line. A context that ends stops the process, and so the read.
func (s *pythonStore) answer(ctx context.Context) (pythonAnswer, error) {
	defer context.AfterFunc(ctx, s.process.signal)()
	var a pythonAnswer
	line, err := s.out.ReadString('\n')
	if err != nil {
		return a, errors.Join(fmt.Errorf("read Python's answer: %w", err), ctx.Err(), s.process.complaint())
	}
	if err := json.Unmarshal([]byte(line), &a); err != nil {
		return a, fmt.Errorf("read Python's answer %q: %w", line, err)
	}
	if a.Error != "" {
		return a, errors.New("in Python: " + a.Error)
	}
	return a, nil
}

func (s *pythonStore) close() error { return s.process.stop() }

// writePosts writes f for Python: a line of the texts, then a line for each post.
func writePosts(name string, f *feed) (err error) {
	var texts []string
	index := make(map[string]int)
	var lines strings.Builder
	enc := json.NewEncoder(&lines)
	for i := range f.posts {
		p := &f.posts[i]
		n, ok := index[p.Text]
		if !ok {
			n = len(texts)
			index[p.Text] = n
			texts = append(texts, p.Text)
		}
		if err := enc.Encode([]any{p.Source, p.Key, p.URL, p.Title, n, p.Lang, p.Published.Unix(), p.Own}); err != nil {
			return fmt.Errorf("write posts: %w", err)
		}
	}
	head, err := json.Marshal(texts)
	if err != nil {
		return fmt.Errorf("write posts: %w", err)
	}
	if err := os.WriteFile(name, append(append(head, '\n'), lines.String()...), 0o600); err != nil {
		return fmt.Errorf("write posts: %w", err)
	}
	return nil
}
