package learned

import (
	"math"
	"math/rand/v2"
)

const (
	epochs     = 15
	rate       = 0.5
	biasRate   = 0.02
	ridge      = 1e-5
	smallSum   = 1e-8
	idfPower   = 0.5
	ratioPrior = 0.5 // added to each count of the NB ratio
)

// linear is a softmax over the features of a text: for each class a weight per
// bucket, and for each bucket a scale that says how much it tells.
type linear struct {
	classes int
	weights []float32 // bucket * classes + class
	scale   []float32 // per bucket; zero for one that was not seen in training
	bias    []float32
}

// sample is a text for training.
type sample struct {
	features []feature
	class    int
	weight   float32 // how often it counts
}

// entry is one feature of a text's vector.
type entry struct {
	bucket uint32
	value  float32
}

// train fits a model to the samples. Equal samples give equal models.
func train(samples []sample, classes int) *linear {
	m := &linear{
		classes: classes, weights: make([]float32, classes*buckets), scale: make([]float32, buckets), bias: make([]float32, classes),
	}
	m.rescale(samples)
	vectors := make([][]entry, len(samples))
	for i, s := range samples {
		vectors[i] = m.vector(s.features, nil)
	}
	squares := make([]float32, len(m.weights))            // AdaGrad's sums
	rnd := rand.New(rand.NewPCG(1, uint64(len(samples)))) //nolint:gosec // equal samples must give equal models
	order := rnd.Perm(len(samples))
	p := make([]float32, classes)
	for range epochs {
		rnd.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
		for _, i := range order {
			m.step(vectors[i], samples[i], squares, p)
		}
	}
	return m
}

// step moves the weights by one sample.
func (m *linear) step(v []entry, s sample, squares, p []float32) {
	m.scores(v, p)
	softmax(p)
	for k := range p {
		if k == s.class {
			p[k]--
		}
		p[k] *= s.weight
		m.bias[k] -= biasRate * p[k]
	}
	for _, e := range v {
		row := int(e.bucket) * m.classes
		for k, g := range p {
			w := &m.weights[row+k]
			g = g*e.value + ridge**w
			squares[row+k] += g * g
			*w -= rate * g / float32(math.Sqrt(float64(squares[row+k]+smallSum)))
		}
	}
}

// rescale weighs each bucket by the largest log ratio of its frequency within a
// class to that outside it, and by its rarity.
func (m *linear) rescale(samples []sample) {
	total := float64(len(samples))
	perClass := make([]float64, m.classes)
	seen := make([]float64, buckets)
	within := make([]float64, len(m.weights))
	for _, s := range samples {
		perClass[s.class]++
		for _, f := range s.features {
			seen[f.bucket]++
			within[int(f.bucket)*m.classes+s.class]++
		}
	}
	for b, n := range seen {
		if n == 0 {
			continue
		}
		ratio := 0.0
		for k, all := range perClass {
			in := within[b*m.classes+k]
			inside := (in + ratioPrior) / (all + 2*ratioPrior)
			outside := (n - in + ratioPrior) / (total - all + 2*ratioPrior)
			ratio = max(ratio, math.Abs(math.Log(inside/outside)))
		}
		m.scale[b] = float32(ratio * math.Pow(1+math.Log((1+total)/(1+n)), idfPower))
	}
}

// vector returns a text's vector in to's memory: of length 1, each kind of
// features with its share of it.
func (m *linear) vector(features []feature, to []entry) []entry {
	var squares [kinds]float32
	for _, f := range features {
		if s := m.scale[f.bucket]; s > 0 {
			v := f.weight() * s
			squares[f.kind] += v * v
		}
	}
	length := float32(0)
	for k, sq := range squares {
		if sq > 0 {
			length += kind(k).share() * kind(k).share()
		}
	}
	if length == 0 {
		return to[:0]
	}
	var factor [kinds]float32
	for k, sq := range squares {
		if sq > 0 {
			factor[k] = kind(k).share() / sqrt(sq*length)
		}
	}
	to = to[:0]
	for _, f := range features {
		if s := m.scale[f.bucket]; s > 0 {
			to = append(to, entry{f.bucket, f.weight() * s * factor[f.kind]})
		}
	}
	return to
}

// scores puts the classes' scores into p.
func (m *linear) scores(v []entry, p []float32) {
	copy(p, m.bias)
	for _, e := range v {
		row := m.weights[int(e.bucket)*m.classes:][:m.classes]
		for k, w := range row {
			p[k] += w * e.value
		}
	}
}

// softmax makes probabilities of scores.
func softmax(p []float32) {
	top, sum := p[0], float32(0)
	for _, s := range p {
		top = max(top, s)
	}
	for k, s := range p {
		p[k] = float32(math.Exp(float64(s - top)))
		sum += p[k]
	}
	for k := range p {
		p[k] /= sum
	}
}

func sqrt(x float32) float32 { return float32(math.Sqrt(float64(x))) }
