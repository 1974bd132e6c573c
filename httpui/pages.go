package httpui

import (
	"bytes"
	"embed"
	"fmt"
	"html/template"
	"net/http"
	"path"

	"vesti.nixg.ru/httpui/i18n"
)

//go:embed templates
var templateFiles embed.FS

// layoutFiles are parsed into every page.
const layoutFiles = "templates/parts/*.html"

// pages are the templates: each page in each language, with the language's
// functions bound, so that a template asks for a text by its key alone.
type pages struct {
	byLanguage map[*i18n.Language]map[string]*template.Template
}

func parsePages(words *i18n.Catalogue, f formats) (*pages, error) {
	p := &pages{byLanguage: map[*i18n.Language]map[string]*template.Template{}}
	names, err := templateFiles.ReadDir("templates")
	if err != nil {
		return nil, fmt.Errorf("read templates: %w", err)
	}
	for _, lang := range words.All() {
		layout, err := template.New("layout.html").Option("missingkey=error").Funcs(f.funcs(lang)).ParseFS(templateFiles, layoutFiles)
		if err != nil {
			return nil, fmt.Errorf("parse templates: %w", err)
		}
		p.byLanguage[lang] = map[string]*template.Template{}
		for _, name := range names {
			if name.IsDir() {
				continue
			}
			page, err := layout.Clone()
			if err == nil {
				page, err = page.ParseFS(templateFiles, path.Join("templates", name.Name()))
			}
			if err != nil {
				return nil, fmt.Errorf("parse templates: %w", err)
			}
			p.byLanguage[lang][name.Name()] = page
		}
	}
	return p, nil
}

// frame is what the layout shows around a page.
type frame struct {
	Lang      string
	Theme     string // "" follows the system
	Assets    string // the address below which they lie
	Page      string // name of the template: marks the entry of the menu
	Title     string
	Here      string // where to return to after a change of language
	LoggedIn  bool
	Flash     string
	Version   string
	Languages []choice
	Themes    []choice
	Body      any
}

// choice is one value of a list and whether it is the one in force.
type choice struct {
	Value   string
	Label   string
	Current bool
}

// render answers with a page. Nothing is sent before all of it is made, so
// that a failing template is an error page and not half a page.
func (s *Server) render(w http.ResponseWriter, r *http.Request, status int, name, titleKey string, body any) error {
	lang := s.language(r)
	title, err := lang.Text(titleKey)
	if err != nil {
		return err
	}
	return s.renderTitled(w, r, status, name, title, body)
}

func (s *Server) renderTitled(w http.ResponseWriter, r *http.Request, status int, name, title string, body any) error {
	lang := s.language(r)
	f := frame{
		Lang: lang.Tag.String(), Theme: themeOf(r), Assets: s.base + s.assets.prefix, Page: name, Title: title,
		Here: s.here(r), LoggedIn: loggedIn(r), Version: s.Version, Body: body,
	}
	if status < http.StatusBadRequest {
		f.Flash = s.takeFlash(w, r, lang)
	}
	for _, l := range s.words.All() {
		own, err := l.Text("language.name")
		if err != nil {
			return err
		}
		f.Languages = append(f.Languages, choice{l.Tag.String(), own, l == lang})
	}
	for _, theme := range []string{"", themeLight, themeDark} {
		label, err := lang.Text("theme." + themeName(theme))
		if err != nil {
			return err
		}
		f.Themes = append(f.Themes, choice{theme, label, theme == f.Theme})
	}
	var b bytes.Buffer
	if err := s.pages.byLanguage[lang][name].ExecuteTemplate(&b, "layout.html", f); err != nil {
		return fmt.Errorf("render %s: %w", name, err)
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Language", f.Lang)
	w.Header().Add("Vary", "Accept-Language, Cookie")
	w.WriteHeader(status)
	_, _ = w.Write(b.Bytes()) // the client may be gone
	return nil
}

// here is the page's own address, for forms that lead back to it.
func (s *Server) here(r *http.Request) string {
	if r.Method != http.MethodGet {
		return s.base + "/"
	}
	return s.base + r.URL.RequestURI()
}
