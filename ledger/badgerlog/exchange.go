package badgerlog

import (
	"errors"
	"os"
)

// exchangeInSteps gives two folders each other's name. A process that dies
// between the steps leaves b under the name of b with ".exchanging".
func exchangeInSteps(a, b string) error {
	aside := b + ".exchanging"
	if err := os.Rename(b, aside); err != nil {
		return err //nolint:wrapcheck // names the folders
	}
	if err := os.Rename(a, b); err != nil {
		return errors.Join(err, os.Rename(aside, b))
	}
	return os.Rename(aside, a) //nolint:wrapcheck // names the folders
}
