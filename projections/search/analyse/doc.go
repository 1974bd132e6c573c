// Package analyse turns texts in Russian, in English and in mixtures of both
// into the terms that are indexed and searched. One pass finds the words,
// folds their letters (case, ё and е, accents, look-alikes of the other script)
// and keeps names such as C++ whole; the stemmer then goes by each word's own
// script, so that nobody has to know the language of a text or of a query.
package analyse
