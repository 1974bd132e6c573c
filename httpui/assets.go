package httpui

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"strings"
)

//go:embed assets
var assetFiles embed.FS

// assets are the embedded files. Their address holds a hash of all of them, so
// that browsers keep them for ever and a new version has new addresses.
type assets struct {
	prefix string // "/assets/1f2e3d4c/"
	files  map[string][]byte
}

func loadAssets() (*assets, error) {
	a := &assets{files: map[string][]byte{}}
	sum := sha256.New()
	err := fs.WalkDir(assetFiles, "assets", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := assetFiles.ReadFile(name)
		if err != nil {
			return err
		}
		a.files[path.Base(name)] = b
		fmt.Fprintf(sum, "%s %d ", name, len(b))
		sum.Write(b)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read assets: %w", err)
	}
	a.prefix = "/assets/" + hex.EncodeToString(sum.Sum(nil)[:6]) + "/"
	return a, nil
}

func (a *assets) serve(w http.ResponseWriter, r *http.Request) error {
	name, ok := strings.CutPrefix(r.URL.Path, a.prefix)
	b, found := a.files[name]
	if !ok || !found {
		return &httpError{status: http.StatusNotFound, key: "error.not_found"}
	}
	w.Header().Set("Content-Type", mime.TypeByExtension(path.Ext(name)))
	w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	_, _ = w.Write(b) // the client may be gone
	return nil
}
