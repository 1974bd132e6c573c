package queue

import (
	"container/heap"
	"time"

	"vesti.nixg.ru/ledger"
)

// waiting finds the post that has been pending for the longest time. Entries of
// the heap whose post has left, or came back since, are dropped when they
// surface.
type waiting struct {
	since map[ledger.PostNum]int64 // microseconds
	heap  *sinceHeap
}

type entry struct {
	num   ledger.PostNum
	since int64
}

func newWaiting() waiting {
	return waiting{since: map[ledger.PostNum]int64{}, heap: &sinceHeap{}}
}

func (w waiting) set(num ledger.PostNum, s ledger.PostState) {
	if s.Status != ledger.StatusPending {
		delete(w.since, num)
		w.prune()
		return
	}
	at := s.Queued.UnixMicro()
	if was, ok := w.since[num]; ok && was == at {
		return
	}
	w.since[num] = at
	heap.Push(w.heap, entry{num, at})
	if w.heap.Len() > 2*len(w.since)+1000 {
		w.rebuild()
	}
	w.prune()
}

// rebuild drops what is no more true below the surface, where one post that
// stays pending for ever would keep it.
func (w waiting) rebuild() {
	*w.heap = (*w.heap)[:0]
	for num, at := range w.since {
		*w.heap = append(*w.heap, entry{num, at})
	}
	heap.Init(w.heap)
}

// prune keeps the heap's first entry a true one.
func (w waiting) prune() {
	for w.heap.Len() > 0 {
		first := (*w.heap)[0]
		if at, ok := w.since[first.num]; ok && at == first.since {
			return
		}
		heap.Pop(w.heap)
	}
}

// oldest is zero where nothing waits.
func (w waiting) oldest() time.Time {
	if w.heap.Len() == 0 {
		return time.Time{}
	}
	return time.UnixMicro((*w.heap)[0].since).UTC()
}

// sinceHeap implements heap.Interface.
type sinceHeap []entry

func (h sinceHeap) Len() int           { return len(h) }
func (h sinceHeap) Less(i, j int) bool { return h[i].since < h[j].since }
func (h sinceHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *sinceHeap) Push(x any)        { *h = append(*h, x.(entry)) }
func (h *sinceHeap) Pop() any {
	old := *h
	last := old[len(old)-1]
	*h = old[:len(old)-1]
	return last
}
