package keyword

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"sync/atomic"
	"time"

	"vesti.nixg.ru/ledger"
	"vesti.nixg.ru/ledger/ownfile"
)

// Classifier holds the rule set in force. It is safe for concurrent use.
type Classifier struct {
	path       string
	directions []ledger.Direction
	inForce    atomic.Pointer[inForce]

	reloading sync.Mutex // the rules in force can be had meanwhile, however long the reading takes
	read      []byte     // the file as last taken over; nil before and for the starter rules
}

type inForce struct {
	rules *Rules
	since time.Time // when they were read; zero for those of New
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
	c.inForce.Store(&inForce{rules: r})
	return c
}

// Rules returns the rule set in force.
func (c *Classifier) Rules() *Rules { return c.inForce.Load().rules }

// Since returns when the rules in force were read.
func (c *Classifier) Since() time.Time { return c.inForce.Load().since }

// Reload reads the file again and reports whether the rules are others now. A
// file that cannot be read or has mistakes leaves the rules in force; the error
// says what is wrong with it. A file that did not change costs only its reading.
func (c *Classifier) Reload() (changed bool, err error) {
	c.reloading.Lock()
	defer c.reloading.Unlock()
	before := c.inForce.Load()
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
	c.read = data
	c.inForce.Store(&inForce{r, time.Now()})
	return before == nil || before.rules.hash != r.hash, nil
}

func (c *Classifier) readFile() ([]byte, error) {
	if c.path == "" {
		return nil, nil
	}
	data, err := ownfile.Read(c.path)
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
