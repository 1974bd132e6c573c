// Package llm judges posts by a language model: Ollama's own API or an
// OpenAI-compatible server, over one thin HTTP client.
//
// Nothing that a model says counts before it was checked, and whatever is wrong
// with an answer, or keeps it away, is an Error with a cause. The text of a post
// is data to the prompt: it stands in a fence that it cannot know, without the
// signs that models take for orders of their own.
package llm
