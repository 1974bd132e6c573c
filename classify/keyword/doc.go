// Package keyword judges posts by keyword rules: stems and phrases that speak
// for a direction, with weights, words that silence a rule, and rules for some
// sources only. Rules are a YAML file; Starter is the one that vesti brings.
package keyword
