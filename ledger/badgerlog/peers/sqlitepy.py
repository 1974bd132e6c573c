"""The work of the bench on SQLite, as the earlier system did it.

Threads of one process, a connection each, BEGIN IMMEDIATE for every change.
Arguments: database, "FULL" or "NORMAL", file of posts, schema. A line of JSON
on standard input asks for a section, a line on standard output answers.
"""

import hashlib
import json
import sqlite3
import sys
import threading
import time

THREADS = 8

INSERT = """INSERT OR IGNORE INTO posts (sha, source, item_key, url, title, text, lang, published, is_own)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"""
PICK = "SELECT id, text FROM posts WHERE classified = 0 ORDER BY is_own DESC, id LIMIT 1"
TAKE = "UPDATE posts SET classified = -1 WHERE id = ?"
DONE = "UPDATE posts SET classified = 1, direction = ?, relevance = ?, interest = ?, summary = ? WHERE id = ?"


class Section:
    """A timed section that ends at a number of posts or after a time."""

    def __init__(self, seconds, posts):
        self.lock = threading.Lock()
        self.left = posts
        self.seconds = seconds
        self.posts = 0
        self.fresh = 0
        self.error = None

    def run(self, connections, body):
        threads = [threading.Thread(target=self._guard, args=(body, c)) for c in connections]
        self.begin = time.monotonic()
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        elapsed = time.monotonic() - self.begin
        if self.error:
            raise self.error
        return {"posts": self.posts, "fresh": self.fresh, "seconds": elapsed}

    def _guard(self, body, connection):
        try:
            body(connection)
        except Exception as e:  # reported by run
            self.error = e

    def take(self, n):
        with self.lock:
            n = min(n, self.left)
            if self.error or time.monotonic() - self.begin >= self.seconds:
                return 0
            self.left -= n
            return n

    def done(self, posts, fresh=0):
        with self.lock:
            self.posts += posts
            self.fresh += fresh


class Bench:
    def __init__(self, path, synchronous, posts, schema):
        with open(posts, encoding="utf-8") as f:
            texts = json.loads(f.readline())
            self.feed = [json.loads(line) for line in f]
        for p in self.feed:
            p[4] = texts[p[4]]
        self.next = 0
        self.lock = threading.Lock()
        self.connections = [self.connect(path, synchronous) for _ in range(THREADS)]
        self.connections[0].executescript(schema)

    def connect(self, path, synchronous):
        c = sqlite3.connect(path, timeout=60, isolation_level=None, check_same_thread=False)
        c.execute("PRAGMA journal_mode=WAL")
        c.execute("PRAGMA synchronous=" + synchronous)
        c.execute("PRAGMA cache_size=-65536")
        return c

    def append(self, batch, posts, seconds):
        section = Section(seconds, posts)

        def body(c):
            while section.take(batch):
                with self.lock:
                    part = self.feed[self.next : self.next + batch]
                    self.next += len(part)
                if not part:
                    return
                rows = [(hashlib.sha256(p[4].encode()).digest(), *p) for p in part]
                before = c.total_changes
                c.execute("BEGIN IMMEDIATE")
                c.executemany(INSERT, rows)
                c.execute("COMMIT")
                section.done(len(part), c.total_changes - before)

        return section.run(self.connections, body)

    def claim(self, posts, seconds):
        section = Section(seconds, posts)

        def body(c):
            while section.take(1):
                c.execute("BEGIN IMMEDIATE")
                row = c.execute(PICK).fetchone()
                if not row or not row[1]:
                    raise LookupError("the queue ran dry or gave a post without its text")
                c.execute(TAKE, (row[0],))
                c.execute("COMMIT")
                c.execute("BEGIN IMMEDIATE")
                c.execute(DONE, ("tech", 0.8, 0.5, "summary", row[0]))
                c.execute("COMMIT")
                section.done(1)

        return section.run(self.connections, body)


def main():
    bench = Bench(*sys.argv[1:5])
    print(json.dumps({}), flush=True)
    for line in sys.stdin:
        ask = json.loads(line)
        do = ask.pop("do")
        try:
            answer = getattr(bench, do)(**ask)
        except Exception as e:
            answer = {"error": repr(e)}
        print(json.dumps(answer), flush=True)
    for c in bench.connections:
        c.close()


main()
