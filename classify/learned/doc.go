// Package learned judges posts by a small linear model that is trained on this
// machine: from an editor's own decisions and, until there are enough of them,
// from posts that the keyword rules are sure of.
//
// The model is a softmax over hashed features (stems, pairs of stems, word
// beginnings, links, tags, the rules that fired), each weighed by how unevenly
// it is spread over the directions, in the manner of NB-SVM: S. Wang and C. D.
// Manning, "Baselines and Bigrams", ACL 2012.
package learned
