package cases

// unmet lists the cases that are not met yet, by id, with the reason. "make
// cases" shows it.
func unmet() map[string]string {
	return map[string]string{}
}
