package httpui

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/gorilla/mux"
	"github.com/klauspost/compress/gzhttp"

	"vesti.nixg.ru/httpui/auth"
	"vesti.nixg.ru/httpui/i18n"
)

// The limits of one request. A page is made in milliseconds; what takes longer
// than handleTime has something wrong behind it.
const (
	handleTime  = 20 * time.Second
	headerTime  = 10 * time.Second
	readTime    = 30 * time.Second
	writeTime   = 60 * time.Second
	idleTime    = 2 * time.Minute
	maxHeader   = 32 << 10
	maxURI      = 8 << 10 // a search of a thousand Cyrillic letters, with every filter, has 6.5 kB
	maxBody     = 256 << 10
	gzipMinimum = 1024
)

// Server is vesti's web interface: pages, JSON API, metrics. It is safe for
// concurrent use and starts no goroutine of its own.
type Server struct {
	options
	accounts *auth.Accounts
	words    *i18n.Catalogue
	said     sayings
	pages    *pages
	assets   *assets
	metrics  *metrics
	handler  http.Handler
}

// options are the completed Options.
type options struct {
	Options
	settings
}

// New returns the web interface. It registers its metrics with o.Registerer.
func New(o Options) (*Server, error) {
	set, err := o.complete()
	if err != nil {
		return nil, err
	}
	s := &Server{options: options{o, set}, accounts: auth.New(o.Store, o.Now, o.PasswordCost)}
	if s.words, err = i18n.Load(); err != nil {
		return nil, err
	}
	if s.said, err = newSayings(s.words); err != nil {
		return nil, err
	}
	if s.assets, err = loadAssets(); err != nil {
		return nil, err
	}
	if s.pages, err = parsePages(s.words, s.formats()); err != nil {
		return nil, err
	}
	if s.metrics, err = newMetrics(o.Registerer, s.queueNow); err != nil {
		return nil, fmt.Errorf("register metrics: %w", err)
	}
	if s.handler, err = s.wrap(s.router()); err != nil {
		return nil, err
	}
	return s, nil
}

// Handler returns what answers requests.
func (s *Server) Handler() http.Handler { return s.handler }

// HTTPServer returns a server for Handler with its limits of time and size.
// The caller listens and shuts down.
func (s *Server) HTTPServer() *http.Server {
	return &http.Server{
		Handler:           s.handler,
		ReadHeaderTimeout: headerTime,
		ReadTimeout:       readTime,
		WriteTimeout:      writeTime,
		IdleTimeout:       idleTime,
		MaxHeaderBytes:    maxHeader,
	}
}

// EnsurePassword sets a random password where there is none and returns it, to
// be shown once; "" where there is one already. Until a password is set nobody
// can log in.
func (s *Server) EnsurePassword(ctx context.Context) (string, error) {
	return s.accounts.EnsurePassword(ctx)
}

// ResetPassword sets a new random password, ends every session and returns the
// password, to be shown once: for an editor who forgot it.
func (s *Server) ResetPassword(ctx context.Context) (string, error) {
	return s.accounts.ResetPassword(ctx)
}

// router is the whole list of addresses.
func (s *Server) router() *mux.Router {
	r := mux.NewRouter()
	r.NotFoundHandler = s.page(routeOther, s.notFound)
	r.MethodNotAllowedHandler = s.page(routeOther, s.methodNotAllowed)

	get := func(path string, route route, h handler) {
		r.Handle(path, s.page(route, h)).Methods(http.MethodGet, http.MethodHead)
	}
	post := func(path string, route route, h handler) { r.Handle(path, s.page(route, h)).Methods(http.MethodPost) }

	get("/", routeCandidates, s.editor(s.candidates))
	get("/posts/{id}", routePost, s.editor(s.post))
	post("/posts/{id}/review", routeAction, s.editor(s.review))
	post("/posts/{id}/requeue", routeAction, s.editor(s.requeue))

	get("/crawlers", routeSources, s.editor(s.crawlers))
	get("/crawlers/{slug}", routeSources, s.editor(s.source))
	post("/crawlers/run", routeAction, s.editor(s.crawlNow))
	post("/crawlers/work", routeAction, s.editor(s.workNow))
	post("/crawlers/reset", routeAction, s.editor(s.resetDead))

	get("/account", routeAccount, s.editor(s.account))
	post("/account/password", routeAccount, s.editor(s.changePassword))
	post("/account/tokens", routeAccount, s.editor(s.createToken))
	post("/account/tokens/revoke", routeAccount, s.editor(s.revokeToken))
	post("/logout", routeAccount, s.editor(s.logout))
	post("/logout/all", routeAccount, s.editor(s.logoutAll))
	get("/help", routeOther, s.editor(s.help))

	get("/login", routeLogin, s.loginForm)
	post("/login", routeLogin, s.login)
	post("/preferences", routeOther, s.preferences)

	s.apiRoutes(r)

	r.Handle("/metrics", s.page(routeMetrics, s.showMetrics)).Methods(http.MethodGet, http.MethodHead)
	r.Handle("/healthz", s.page(routeProbe, healthz)).Methods(http.MethodGet, http.MethodHead)
	r.Handle("/readyz", s.page(routeProbe, s.readyz)).Methods(http.MethodGet, http.MethodHead)
	r.PathPrefix("/assets/").Handler(s.page(routeAsset, s.assets.serve)).Methods(http.MethodGet, http.MethodHead)
	return r
}

// wrap puts around the router what every request passes, outermost last.
func (s *Server) wrap(h http.Handler) (http.Handler, error) {
	guard := http.NewCrossOriginProtection()
	if s.origin != "" {
		if err := guard.AddTrustedOrigin(s.origin); err != nil {
			return nil, fmt.Errorf("external URL: %w", err)
		}
	}
	guard.SetDenyHandler(s.page(routeOther, s.crossOrigin))
	// No page holds a secret that an attacker could have compressed beside text
	// of his own (there are no form tokens), so that compression gives nothing away.
	compress, err := gzhttp.NewWrapper(gzhttp.MinSize(gzipMinimum))
	if err != nil {
		return nil, fmt.Errorf("compression: %w", err)
	}
	h = guard.Handler(h)
	h = s.limits(h)
	h = s.stripBase(h)
	h = compress(h)
	h = securityHeaders(h)
	return h, nil
}
