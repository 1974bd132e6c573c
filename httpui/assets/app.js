// Conveniences on top of pages that work without them: keys, deciding without
// a reload, and controls that apply themselves. Nothing here is needed.
(() => {
  'use strict';

  const root = document.documentElement;
  root.classList.add('js');

  const list = document.getElementById('posts');
  const article = document.querySelector('article[data-id]');
  const keys = document.getElementById('keys');
  const live = document.getElementById('live');
  let current = -1;

  const rows = () => (list ? [...list.querySelectorAll('.post')] : []);

  function select(index) {
    const all = rows();
    if (!all.length) return;
    all[current]?.classList.remove('current');
    current = Math.max(0, Math.min(index, all.length - 1));
    const row = all[current];
    row.classList.add('current');
    row.querySelector('a.open').focus({ preventScroll: true });
    row.scrollIntoView({ block: 'nearest' });
  }

  // decide sends a list's button in the background and shows the answer in the
  // row; where that fails the form goes the ordinary way, which shows why.
  async function decide(form, button) {
    const row = form.closest('.post');
    const data = new FormData(form, button);
    try {
      const answer = await fetch(form.action, {
        method: 'POST',
        body: new URLSearchParams(data),
        headers: { Accept: 'application/json' },
      });
      if (!answer.ok) throw new Error(answer.statusText);
      row.dataset.verdict = data.get('verdict');
      const said = row.querySelector(`.said-${row.dataset.verdict || 'none'}`);
      live.textContent = said ? said.textContent : button.textContent;
    } catch {
      form.dataset.plain = '1';
      form.requestSubmit(button);
    }
  }

  list?.addEventListener('submit', (event) => {
    const form = event.target;
    if (form.dataset.plain || !form.classList.contains('acts')) return;
    event.preventDefault();
    decide(form, event.submitter);
  });

  list?.addEventListener('focusin', (event) => {
    const row = event.target.closest('.post');
    const index = rows().indexOf(row);
    if (index < 0 || index === current) return;
    rows()[current]?.classList.remove('current');
    current = index;
    row.classList.add('current');
  });

  document.getElementById('sort')?.addEventListener('change', (event) => event.target.form.requestSubmit());
  document.getElementById('keys-open')?.addEventListener('click', () => keys.showModal());

  // On a wide screen the filters stand open beside the list.
  const filters = document.getElementById('filters');
  if (filters) {
    const wide = matchMedia('(min-width: 52.01rem)');
    const inUse = filters.open;
    const fit = () => { filters.open = wide.matches || inUse; };
    wide.addEventListener('change', fit);
    fit();
  }

  // Counters and the table of sources renew themselves while somebody looks,
  // but not under the reader's hands.
  const parts = [...document.querySelectorAll('[data-live]')];
  async function renew() {
    if (document.hidden) return;
    const answer = await fetch(location.href, { headers: { Accept: 'text/html' }, redirect: 'error' });
    if (!answer.ok) return;
    const fresh = new DOMParser().parseFromString(await answer.text(), 'text/html');
    for (const part of parts) {
      const next = fresh.getElementById(part.id);
      const busy = part.contains(document.activeElement) || part.querySelector('details[open]');
      if (next && !busy && part.innerHTML !== next.innerHTML) part.innerHTML = next.innerHTML;
    }
  }
  if (parts.length) setInterval(() => renew().catch(() => {}), 10_000);

  const press = (name) => {
    const scope = list ? rows()[current] : document.getElementById('review');
    const button = scope?.querySelector(`button.${name}`);
    if (button && button.offsetParent) button.click();
  };
  const follow = (name) => {
    const scope = list ? rows()[current] : article;
    scope?.querySelector(`a.${name}`)?.click();
  };

  const actions = {
    j: () => select(current + 1),
    k: () => select(current - 1),
    o: () => follow('open'),
    v: () => follow('original'),
    p: () => press('act-pick'),
    r: () => press('act-drop'),
    u: () => press('undo'),
    '/': () => document.getElementById('q')?.focus(),
    '?': () => keys?.showModal(),
  };
  const places = { c: 0, s: 1 };
  let going = 0; // when "g" was pressed

  document.addEventListener('keydown', (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || keys?.open) return;
    if (event.target.closest('input, textarea, select, [contenteditable]')) {
      if (event.key === 'Escape') event.target.blur();
      return;
    }
    // By the key's place as well, so that the letters work on a Cyrillic layout.
    const letter = event.code.startsWith('Key') ? event.code.slice(3).toLowerCase() : event.key;
    if (Date.now() - going < 1000 && letter in places) {
      going = 0;
      document.querySelectorAll('.top .nav')[0]?.querySelectorAll('a')[places[letter]]?.click();
      return;
    }
    if (letter === 'g') {
      going = Date.now();
      return;
    }
    const action = actions[event.key] || actions[letter];
    if (!action) return;
    event.preventDefault();
    action();
  });
})();
