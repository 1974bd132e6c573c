package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"vesti.nixg.ru/ledger"
)

func layers(t *testing.T, file string, env, flags map[string]string) configLayers {
	t.Helper()
	dir := t.TempDir()
	if file != "" {
		if err := os.MkdirAll(filepath.Join(dir, "data"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "data", "vesti.yaml"), []byte(file), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return configLayers{env: env, flags: flags, cwd: dir}
}

func TestConfigLayers(t *testing.T) {
	l := layers(t, "work:\n  workers: 3\n  grace: 5s\nweb: {listen: 'localhost:1'}\ntime_zone: Europe/Moscow\ncrawl.p0: 20m\ndirections: [linux, space]\n",
		map[string]string{"VESTI_WORK_WORKERS": "4", "VESTI_LLM_TIMEOUT": "90s"},
		map[string]string{"work.workers": "5"})
	c, err := loadConfig(l)
	if err != nil {
		t.Fatal(err)
	}
	if c.Workers != 5 || c.Grace != 5*time.Second || c.Listen != "localhost:1" || c.LLMTimeout != 90*time.Second || c.IntervalP0 != 20*time.Minute {
		t.Errorf("layers in the wrong order: %+v", c)
	}
	if got := joinList(c.Directions, func(d ledger.Direction) string { return string(d) }); got != "linux,space" {
		t.Errorf("directions = %s", got)
	}
	if want := filepath.Join(l.cwd, "data", "sources.yaml"); c.Sources != want {
		t.Errorf("sources = %s, want %s", c.Sources, want)
	}
}

func TestConfigErrorsNameTheirPlace(t *testing.T) {
	for _, tt := range []struct {
		name, file string
		env, flags map[string]string
		want       []string
	}{
		{"unknown key", "work:\n  workers: 3\n  speed: 9\n", nil, nil, []string{"line 3", "work.speed", "lists them all"}},
		{"mistyped key", "web:\n  listn: ':1'\n", nil, nil, []string{"line 2", "web.listn", "did you mean web.listen?"}},
		{"value for a section", "\nweb: hello\n", nil, nil, []string{"vesti.yaml", "line 2", "web", "mapping", "external_url, listen"}},
		{"list for a section", "llm: [a]\n", nil, nil, []string{"line 1", "llm", "mapping", "model"}},
		{"direction twice", "directions: [linux, space, linux]\n", nil, nil, []string{"directions", "linux is there twice"}},
		{"no such rules", "", nil, map[string]string{"rules": "/nonexist.yaml"}, []string{"setting rules", "/nonexist.yaml"}},
		{"no such sources", "sources: gone.yaml\n", nil, nil, []string{"setting sources", "gone.yaml"}},
		{"folder of rules", "", nil, map[string]string{"rules": "."}, []string{"setting rules", "folder"}},
		{"unknown section", "\njob:\n  workers: 3\n", nil, nil, []string{"line 2", "job"}},
		{"wrong kind", "work:\n  workers: many\n", nil, nil, []string{"line 2", "work.workers", "many", "whole number"}},
		{"broken file", "work: [\n", nil, nil, []string{"vesti.yaml"}},
		{"environment", "", map[string]string{"VESTI_WORK_GRACE": "soon"}, nil, []string{"VESTI_WORK_GRACE", "soon"}},
		{"out of range", "", nil, map[string]string{"work.workers": "0"}, []string{"work.workers"}},
		{"size out of range", "", nil, map[string]string{"ledger.free_space": "1KiB"}, []string{"ledger.free_space: 1KiB is outside 64MiB to 1073741824GiB"}},
		{"time out of range", "", nil, map[string]string{"crawl.p0": "5s"}, []string{"crawl.p0: 5s is outside 1m to 30d"}},
		{"feed out of range", "", nil, map[string]string{"crawl.feed_bytes": "0"}, []string{"crawl.feed_bytes: 0 is outside 64KiB to 1GiB"}},
		{"negative days", "", nil, map[string]string{"ledger.keep_runs": "-3d"}, []string{"ledger.keep_runs", "-3d"}},
		{"zone", "", nil, map[string]string{"time_zone": "Mars/Olympus"}, []string{"time_zone", "Mars/Olympus"}},
		{"model missing", "", nil, map[string]string{"llm.kind": "ollama"}, []string{"llm.model"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := loadConfig(layers(t, tt.file, tt.env, tt.flags))
			if !errors.Is(err, errUsage) {
				t.Fatalf("error = %v, want a usage error", err)
			}
			for _, w := range tt.want {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("error %q does not name %q", err, w)
				}
			}
		})
	}
}

// A mistyped variable is told with the setting that it is like.
func TestUnknownEnvironment(t *testing.T) {
	env := map[string]string{"VESTI_WEB_LISTN": ":1", "VESTI_LLM_MODEL": "tiny", "VESTI_SERVICE_PORT_HTTP": "80", "WEB_LISTN": ":1", "VESTI_CASES": "../shared/cases"}
	var errs strings.Builder
	c := call{err: &errs, env: env, cwd: t.TempDir()}
	if _, err := c.config(); err != nil {
		t.Fatal(err)
	}
	want := "warning: environment VESTI_SERVICE_PORT_HTTP: no such setting, it changes nothing; \"vesti config\" lists them all\n" +
		"warning: environment VESTI_WEB_LISTN: no such setting, it changes nothing; did you mean VESTI_WEB_LISTEN? \"vesti config\" lists them all\n"
	if errs.String() != want {
		t.Errorf("said %s", errs.String())
	}
	env["VESTI_LOG_JSON"] = "true"
	errs.Reset()
	if _, err := c.config(); err != nil || !strings.HasPrefix(errs.String(), `{"time":`) {
		t.Errorf("in a log of JSON: %s, %v", errs.String(), err)
	}
}

// Each setting must come back from the form in which "vesti config" shows it.
func TestSettingsRoundTrip(t *testing.T) {
	c := defaultConfig()
	seen := map[string]bool{}
	for _, s := range c.settings() {
		if s.doc == "" || seen[s.key] {
			t.Errorf("setting %s: no meaning, or twice", s.key)
		}
		seen[s.key] = true
		before := s.String()
		if before == "" {
			continue
		}
		if err := s.set(before); err != nil || s.String() != before {
			t.Errorf("setting %s: %q became %q (%v)", s.key, before, s.String(), err)
		}
	}
}

func TestUnits(t *testing.T) {
	for in, want := range map[string]ByteSize{"0": 0, "512": 512, "3KiB": 3 << 10, "20 MiB": 20 << 20, "2GiB": 2 << 30, "7B": 7} {
		if got, err := parseByteSize(in); err != nil || got != want {
			t.Errorf("parseByteSize(%q) = %d, %v; want %d", in, got, err, want)
		}
	}
	for _, in := range []string{"", "-1", "1.5GiB", "9999999999GiB", "1TB"} {
		if got, err := parseByteSize(in); err == nil {
			t.Errorf("parseByteSize(%q) = %d, want an error", in, got)
		}
	}
	for in, want := range map[string]time.Duration{"0": 0, "30d": 720 * time.Hour, "1.5d": 36 * time.Hour, "15m": 15 * time.Minute} {
		if got, err := parseDuration(in); err != nil || got != want {
			t.Errorf("parseDuration(%q) = %s, %v; want %s", in, got, err, want)
		}
	}
	if _, err := parseDuration("-5m"); err == nil {
		t.Error("a negative duration was taken")
	}
}
