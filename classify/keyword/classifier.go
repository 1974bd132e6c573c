package keyword

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"vesti.nixg.ru/ledger"
)

// Classifier holds the rule set in force. It is safe for concurrent use.
type Classifier struct {
	path       string
	directions []ledger.Direction
	rules      atomic.Pointer[Rules]

	mu    sync.Mutex
	read  []byte    // the file as last taken over; nil before and for the starter rules
	since time.Time // when that was
}

// Open returns a classifier with the rules in the file at path, for the given
// directions; with path "", and until there is a file, it has the starter rules.
func Open(path string, directions []ledger.Direction) (*Classifier, error) {
	c := &Classifier{path: path, directions: directions}
	if _, err := c.Reload(); err != nil {
		return nil, err
	}
	return c, nil
}

// New returns a classifier with these rules, which Reload leaves in force.
func New(r *Rules) *Classifier {
	c := new(Classifier)
	c.rules.Store(r)
	return c
}

// Rules returns the rule set in force.
func (c *Classifier) Rules() *Rules { return c.rules.Load() }

// Since returns when the rules in force were read.
func (c *Classifier) Since() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.since
}

// Reload reads the file again and reports whether the rules are others now. A
// file that cannot be read or has mistakes leaves the rules in force; the error
// says what is wrong with it. A file that did not change costs only its reading.
func (c *Classifier) Reload() (changed bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	before := c.rules.Load()
	if before != nil && c.path == "" {
		return false, nil
	}
	data, err := c.readFile()
	starter := c.path == "" || errors.Is(err, ledger.ErrNotFound) && c.read == nil
	if before != nil && (starter || err == nil && bytes.Equal(data, c.read)) {
		return false, nil
	}
	var r *Rules
	switch {
	case starter:
		r, err = ParseStarter(c.directions)
	case err == nil:
		r, err = Parse(c.path, data, c.directions)
	}
	if err != nil {
		return false, err
	}
	c.read, c.since = data, time.Now()
	c.rules.Store(r)
	return before == nil || before.hash != r.hash, nil
}

func (c *Classifier) readFile() ([]byte, error) {
	if c.path == "" {
		return nil, nil
	}
	data, err := os.ReadFile(c.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: rules file %s does not exist: write the starter rules there, or leave the setting empty", ledger.ErrNotFound, c.path)
	}
	if err != nil {
		return nil, fmt.Errorf("read rules: %w", err)
	}
	return data, nil
}

// Classify judges an item by the rules in force, with reasons and a summary.
func (c *Classifier) Classify(item *ledger.Item) (ledger.Classification, Verdict) {
	return c.Rules().Explain(item)
}
