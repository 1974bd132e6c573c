package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"sync"

	_ "modernc.org/sqlite" // the driver "sqlite"
)

// sqliteSchema has the index that makes the claim's query a single seek.
const sqliteSchema = `
CREATE TABLE posts (
	id INTEGER PRIMARY KEY,
	sha BLOB NOT NULL UNIQUE,
	source TEXT, item_key TEXT, url TEXT, title TEXT, text TEXT, lang TEXT, published INTEGER,
	is_own INTEGER NOT NULL,
	classified INTEGER NOT NULL DEFAULT 0,
	direction TEXT, relevance REAL, interest REAL, summary TEXT
);
CREATE INDEX queue ON posts (classified, is_own DESC, id);`

const (
	sqliteInsert = `INSERT INTO posts (sha, source, item_key, url, title, text, lang, published, is_own)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (sha) DO NOTHING`
	sqlitePick = `SELECT id, text FROM posts WHERE classified = 0 ORDER BY is_own DESC, id LIMIT 1`
	sqliteTake = `UPDATE posts SET classified = -1 WHERE id = ?`
	sqliteDone = `UPDATE posts SET classified = 1, direction = ?, relevance = ?, interest = ?, summary = ? WHERE id = ?`
)

// sqliteStore writes through one connection: SQLite lets one writer in at a
// time, and waiting in the process is cheaper than its busy handler.
type sqliteStore struct {
	db *sql.DB

	mu                       sync.Mutex // one transaction at a time
	conn                     *sql.Conn
	begin, commit            *sql.Stmt
	insert, pick, take, done *sql.Stmt
}

func openSQLite(ctx context.Context, dir string, c class) (_ store, err error) {
	synchronous := "FULL"
	if c == classP {
		synchronous = "NORMAL"
	}
	name := fmt.Sprintf("file:%s?_pragma=journal_mode(WAL)&_pragma=synchronous(%s)&_pragma=cache_size(-65536)",
		filepath.Join(dir, "posts.db"), synchronous)
	s := &sqliteStore{}
	if s.db, err = sql.Open("sqlite", name); err != nil {
		return nil, fmt.Errorf("open SQLite: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
		}
	}()
	if s.conn, err = s.db.Conn(ctx); err != nil {
		return nil, fmt.Errorf("connect to SQLite: %w", err)
	}
	if _, err := s.conn.ExecContext(ctx, sqliteSchema); err != nil {
		return nil, fmt.Errorf("make the table: %w", err)
	}
	for query, stmt := range map[string]**sql.Stmt{
		"BEGIN IMMEDIATE": &s.begin, "COMMIT": &s.commit,
		sqliteInsert: &s.insert, sqlitePick: &s.pick, sqliteTake: &s.take, sqliteDone: &s.done,
	} {
		if *stmt, err = s.conn.PrepareContext(ctx, query); err != nil {
			return nil, fmt.Errorf("prepare %q: %w", query, err)
		}
	}
	return s, nil
}

// transact runs f between BEGIN IMMEDIATE and COMMIT. After an error the
// store is of no further use.
func (s *sqliteStore) transact(ctx context.Context, f func() error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, err := s.begin.ExecContext(ctx); err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	if err := f(); err != nil {
		return err
	}
	if _, err := s.commit.ExecContext(ctx); err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	return nil
}

func (s *sqliteStore) append(ctx context.Context, f *feed, batch int, b budget) (tally, error) {
	return produce(ctx, f, batch, b, func(ctx context.Context, posts []post) (int, error) {
		hashes := make([][]byte, len(posts))
		for i := range posts {
			h := posts[i].hash()
			hashes[i] = h[:]
		}
		fresh := 0
		err := s.transact(ctx, func() error {
			for i := range posts {
				p := &posts[i]
				r, err := s.insert.ExecContext(ctx, hashes[i], p.Source, p.Key, p.URL, p.Title, p.Text, p.Lang, p.Published.Unix(), p.Own)
				if err != nil {
					return fmt.Errorf("insert: %w", err)
				}
				n, err := r.RowsAffected()
				if err != nil {
					return fmt.Errorf("insert: %w", err)
				}
				fresh += int(n)
			}
			return nil
		})
		return fresh, err
	})
}

func (s *sqliteStore) claim(ctx context.Context, m mode, b budget) (tally, error) {
	return work(ctx, m, b, func(ctx context.Context, _, _ int) error {
		var id int64
		var text string
		err := s.transact(ctx, func() error {
			if err := s.pick.QueryRowContext(ctx).Scan(&id, &text); err != nil {
				return fmt.Errorf("pick: %w", err)
			}
			_, err := s.take.ExecContext(ctx, id)
			return err
		})
		if err != nil {
			return fmt.Errorf("claim: %w", err)
		}
		if text == "" {
			return errors.New("claimed a post without its text")
		}
		return s.transact(ctx, func() error {
			_, err := s.done.ExecContext(ctx, "tech", 0.8, 0.5, "summary", id)
			return err
		})
	}, nil)
}

func (s *sqliteStore) close() error {
	var errs []error
	if s.conn != nil {
		errs = append(errs, s.conn.Close())
	}
	return errors.Join(append(errs, s.db.Close())...)
}
