package posts

import (
	"cmp"
	"slices"
	"sync"

	"vesti.nixg.ru/ledger"
)

// columns hold in memory what lists filter and order by, about 40 bytes a post.
// Rows are in the order of post numbers, since a later post has a higher one.
type columns struct {
	mu sync.RWMutex // guards all that follows

	rows     []attributes
	byDate   []uint32            // rows, the oldest date first
	carriers map[uint32][]uint16 // by row: further sources, where there are any

	directions, sources, langs interned
}

// attributes are a post's.
type attributes struct {
	num       ledger.PostNum
	date      int64 // microseconds
	interest  float32
	direction uint16
	source    uint16
	lang      uint16
	status    ledger.Status
	verdict   uint8 // index of verdicts
	own       bool
	removed   bool
	carried   bool // has an entry in carriers
}

// Verdicts and statuses are numbered by their place here.
var (
	verdicts = [...]ledger.Verdict{ledger.VerdictNone, ledger.VerdictPicked, ledger.VerdictRejected}
	statuses = [...]ledger.Status{ledger.StatusNone, ledger.StatusPending, ledger.StatusClassified, ledger.StatusParked}
)

// nobody is the number of a value that no post has.
const nobody = 0xffff

// change is a post's new attributes, in words.
type change struct {
	attributes
	direction ledger.Direction
	source    ledger.Slug
	lang      string
	carriers  []ledger.Slug
}

func changeOf(num ledger.PostNum, r *record) change {
	c := change{
		attributes: attributes{
			num: num, date: r.post.Date.UnixMicro(), interest: float32(r.state.Interest), status: r.state.Status,
			own: r.post.IsOwn, removed: r.state.Removed || r.state.Expired, carried: len(r.post.Carriers) > 0,
		},
		direction: r.state.EffectiveDirection(), source: r.post.Source, lang: r.post.Lang, carriers: r.post.Carriers,
	}
	for i, v := range verdicts {
		if v == r.state.Verdict {
			c.verdict = uint8(i)
		}
	}
	return c
}

func newColumns() *columns {
	return &columns{carriers: map[uint32][]uint16{}, directions: newInterned(), sources: newInterned(), langs: newInterned()}
}

// apply stores changes, which name each post once. The date of a post that is
// known does not change.
func (c *columns) apply(changes []change) {
	slices.SortFunc(changes, func(a, b change) int { return cmp.Compare(a.num, b.num) })
	c.mu.Lock()
	defer c.mu.Unlock()
	first := len(c.rows)
	for _, ch := range changes {
		a := ch.attributes
		a.direction = c.directions.id(string(ch.direction))
		a.source = c.sources.id(string(ch.source))
		a.lang = c.langs.id(ch.lang)
		row, known := c.row(ch.num)
		if known {
			c.rows[row] = a
		} else {
			c.rows = append(c.rows, a)
			row = len(c.rows) - 1
		}
		if a.carried {
			ids := make([]uint16, 0, len(ch.carriers))
			for _, s := range ch.carriers {
				ids = append(ids, c.sources.id(string(s)))
			}
			c.carriers[uint32(row)] = ids
		}
	}
	c.placeByDate(first)
}

// placeByDate merges the rows from first on into the order by date. New posts
// are mostly the newest, so that little of it moves.
func (c *columns) placeByDate(first int) {
	if first == len(c.rows) {
		return
	}
	fresh := make([]uint32, 0, len(c.rows)-first)
	for row := first; row < len(c.rows); row++ {
		fresh = append(fresh, uint32(row))
	}
	slices.SortFunc(fresh, c.compareDates)
	from, _ := slices.BinarySearchFunc(c.byDate, fresh[0], c.compareDates)
	tail := slices.Clone(c.byDate[from:])
	c.byDate = slices.Grow(c.byDate[:from], len(tail)+len(fresh))
	for len(tail) > 0 && len(fresh) > 0 {
		next := &tail
		if c.compareDates(fresh[0], tail[0]) < 0 {
			next = &fresh
		}
		c.byDate = append(c.byDate, (*next)[0])
		*next = (*next)[1:]
	}
	c.byDate = append(append(c.byDate, tail...), fresh...)
}

func (c *columns) compareDates(a, b uint32) int {
	return cmp.Or(cmp.Compare(c.rows[a].date, c.rows[b].date), cmp.Compare(a, b))
}

func (c *columns) row(num ledger.PostNum) (int, bool) {
	return slices.BinarySearchFunc(c.rows, num, func(a attributes, n ledger.PostNum) int { return cmp.Compare(a.num, n) })
}

// has reports whether a field, one of the columns', ever had the value.
func (c *columns) has(field *interned, value string) bool {
	c.mu.RLock()
	defer c.mu.RUnlock()
	_, ok := field.ids[value]
	return ok
}

// interned numbers the values of a field.
type interned struct {
	ids    map[string]uint16
	values []string
}

func newInterned() interned { return interned{ids: map[string]uint16{}} }

// id returns the number of a value, a new one for a new value. There are far
// fewer sources, languages and directions than numbers; were there more, the
// last of them would stand for the rest.
func (n *interned) id(value string) uint16 {
	if id, ok := n.ids[value]; ok {
		return id
	}
	if len(n.values) == nobody {
		return nobody - 1
	}
	id := uint16(len(n.values))
	n.ids[value] = id
	n.values = append(n.values, value)
	return id
}
