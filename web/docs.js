// What scripts add to the reference at /docs: search, forms to try operations, buttons to copy. Without it the page is complete.

const root = document.querySelector('.docs');
const page = document.documentElement.lang;

/** A sentence of the page in its language, with %1 and %2 filled. */
const say = (name, ...values) => values.reduce((text, value, i) => text.replace(`%${i + 1}`, value), root.querySelector(`[data-word="${name}"]`).dataset.text);

/** An element with properties, attributes (those with a hyphen, and "for") and children. */
function make(name, properties = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (key.includes('-') || key === 'for') element.setAttribute(key, value);
    else element[key] = value;
  }
  element.append(...children);
  return element;
}

// --- search ---

/** Everything an operation says, without the answers that many others have too. */
function wordsOf(article) {
  const copy = article.cloneNode(true);
  for (const common of copy.querySelectorAll('[data-common], .docs-try')) common.remove();
  return `${article.id} ${copy.textContent}`.toLowerCase();
}

function addSearch() {
  const nav = root.querySelector('.docs-nav');
  const menu = nav.querySelector('.docs-menu');
  const input = make('input', { type: 'search', id: 'docs-search', autocomplete: 'off', spellcheck: false });
  const status = make('p', { role: 'status' });
  nav.prepend(make('div', { className: 'docs-search' }, make('label', { for: 'docs-search' }, `${say('search')} `, make('kbd', { title: say('search_key') }, '/')), input, status));

  const none = make('p', { className: 'docs-card docs-none', hidden: true, ariaHidden: 'true' }, say('none')); // the status says it already
  root.querySelector('h1').after(none);
  const articles = [...root.querySelectorAll('.docs-operation')];
  const rest = root.querySelectorAll('#introduction, #credentials, #common-answers, #objects');
  let texts;

  const clear = () => {
    input.value = '';
    filter();
  };
  const filter = () => {
    texts ??= articles.map(wordsOf);
    const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
    let found = 0;
    articles.forEach((article, i) => {
      article.hidden = !words.every((word) => texts[i].includes(word));
      found += article.hidden ? 0 : 1;
      nav.querySelector(`a[href="#${article.id}"]`).parentElement.hidden = article.hidden;
    });
    for (const section of root.querySelectorAll('.docs-tag')) {
      if (section.querySelector('.docs-operation')) section.hidden = !section.querySelector('.docs-operation:not([hidden])');
    }
    for (const section of rest) section.hidden = words.length > 0;
    none.hidden = found > 0;
    for (const heading of menu.querySelectorAll('h2')) {
      const target = document.getElementById(heading.firstElementChild.hash.slice(1));
      heading.hidden = heading.nextElementSibling.hidden = target.hidden;
    }
    status.textContent = !words.length ? '' : found ? say('found', found, articles.length) : say('none');
  };

  input.addEventListener('input', filter);
  input.addEventListener('keydown', (event) => {
    if (event.key === 'Escape') {
      event.preventDefault();
      clear();
    } else if (event.key === 'Enter') {
      const first = articles.find((article) => !article.hidden);
      if (!input.value || !first) return;
      location.hash = first.id;
      first.scrollIntoView();
      input.blur();
    }
  });
  document.addEventListener('keydown', (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest?.('input, textarea, select')) return;
    if (event.key === 'Escape' && input.value) clear();
    if (event.key !== '/') return;
    event.preventDefault();
    input.focus();
    input.select();
  });
  // A link to an operation that the search has hidden shows it.
  addEventListener('hashchange', () => {
    const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (!target?.closest('[hidden]')) return;
    clear();
    target.scrollIntoView();
  });
}

/** The list of operations is closed on a narrow screen until it is wanted, and marks the one that is read. */
function prepareMenu() {
  const menu = root.querySelector('.docs-menu');
  const narrow = matchMedia('(max-width: 56rem)');
  const fit = () => (menu.open = !narrow.matches);
  fit();
  narrow.addEventListener('change', fit);
  menu.addEventListener('click', (event) => {
    if (narrow.matches && event.target.closest('a')) menu.open = false;
  });
  const seen = new IntersectionObserver(
    (entries) => {
      const entry = entries.find(({ isIntersecting }) => isIntersecting);
      const link = entry && menu.querySelector(`a[href="#${entry.target.id}"]`);
      if (!link) return;
      menu.querySelector('[aria-current]')?.removeAttribute('aria-current');
      link.setAttribute('aria-current', 'location');
    },
    { rootMargin: '-10% 0px -80%' },
  );
  for (const article of root.querySelectorAll('.docs-operation')) seen.observe(article);
}

// --- copying ---

function addCopyButtons() {
  for (const figure of root.querySelectorAll('.docs-code')) {
    const caption = figure.querySelector('figcaption');
    const button = make('button', { type: 'button', className: 'docs-copy', 'aria-label': `${say('copy')}: ${caption.textContent}`, lang: page }, say('copy'));
    button.addEventListener('click', async () => {
      const code = figure.querySelector('code');
      try {
        await navigator.clipboard.writeText(code.textContent);
        button.textContent = say('copied');
      } catch {
        getSelection().selectAllChildren(code); // no clipboard, as on plain HTTP: the text is selected for the keyboard
        button.textContent = say('selected');
      }
      setTimeout(() => (button.textContent = say('copy')), 2000);
    });
    caption.append(button);
  }
}

// --- trying an operation ---

/** The credential that the reader typed: kept in this tab only, and for this page only where the tab's storage is barred. */
const credential = {
  kind: 'bearer',
  value: '',
  read() {
    try {
      this.kind = sessionStorage.getItem('docs-credential-kind') ?? this.kind;
      this.value = sessionStorage.getItem('docs-credential') ?? this.value;
    } catch {
      // the storage is barred
    }
  },
  keep(kind, value) {
    Object.assign(this, { kind, value });
    try {
      sessionStorage.setItem('docs-credential-kind', kind);
      sessionStorage.setItem('docs-credential', value);
    } catch {
      // the storage is barred
    }
    for (const field of root.querySelectorAll('.docs-kind')) field.value = kind;
    for (const field of root.querySelectorAll('.docs-credential')) if (field.value !== value) field.value = value;
  },
};

/** The fields for the credential; those of all operations show the same. */
function credentialFields(id) {
  const kind = make('select', { id: `${id}-kind`, className: 'docs-kind' }, make('option', { value: 'bearer' }, say('bearer')), make('option', { value: 'key' }, say('key')));
  const value = make('input', { type: 'password', id: `${id}-credential`, className: 'docs-credential', autocomplete: 'off', spellcheck: false });
  kind.value = credential.kind;
  value.value = credential.value;
  const keep = () => credential.keep(kind.value, value.value);
  kind.addEventListener('change', keep);
  value.addEventListener('input', keep);
  return make('div', { className: 'docs-pair' }, labelled(kind, say('sent_as')), labelled(value, say('token')));
}

const labelled = (field, text) => make('div', {}, make('label', { for: field.id }, text), field);

function parameterField(id, { dataset }) {
  const name = `${id}-${dataset.parameter}`;
  const required = 'required' in dataset;
  const field = dataset.allowed
    ? make('select', { id: name, required }, make('option', { value: '' }, ''), ...dataset.allowed.split(' ').map((one) => make('option', {}, one)))
    : make('input', { type: 'text', id: name, required, autocomplete: 'off', spellcheck: false, placeholder: dataset.example ?? '' });
  return { field, name: dataset.parameter, place: dataset.in, part: labelled(field, `${dataset.parameter}${required ? '' : ` ${say('optional')}`}`) };
}

/** The body's field, and a choice of examples to fill it with. */
function bodyFields(id, article) {
  const examples = [...article.querySelectorAll('[data-body]')];
  if (!examples.length) return null;
  const field = make('textarea', { id: `${id}-body`, spellcheck: false });
  const fill = (figure) => (field.value = figure.querySelector('code').textContent);
  fill(examples[0]);
  const parts = [labelled(field, say('body'))];
  if (examples.length > 1) {
    const choice = make('select', { id: `${id}-example` }, ...examples.map((figure, i) => make('option', { value: i }, figure.querySelector('figcaption').firstChild.textContent)));
    choice.addEventListener('change', () => fill(examples[choice.value]));
    parts.unshift(labelled(choice, say('example')));
  }
  return { field, parts };
}

/** The request that the form describes. */
function requestOf(path, method, parameters, body, withCredential) {
  const headers = new Headers();
  const query = new URLSearchParams();
  for (const { field, name, place } of parameters) {
    const value = field.value.trim();
    if (place === 'path') path = path.replace(`{${name}}`, encodeURIComponent(value));
    else if (value && place === 'query') query.set(name, value);
    else if (value) headers.set(name, value);
  }
  if (withCredential && credential.value) headers.set(...(credential.kind === 'key' ? ['X-API-Key', credential.value] : ['Authorization', `Bearer ${credential.value}`]));
  if (body?.field.value.trim()) headers.set('Content-Type', 'application/json');
  const options = { method, headers, cache: 'no-store', credentials: 'omit', redirect: 'manual' };
  if (headers.has('Content-Type')) options.body = body.field.value;
  const asked = query.toString();
  return [asked ? `${path}?${asked}` : path, options];
}

function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** After a sign-in: a button that takes the token over for the other operations. */
function tokenButton(token) {
  const button = make('button', { type: 'button' }, say('use_token'));
  button.addEventListener('click', () => {
    credential.keep('bearer', token);
    button.replaceWith(make('p', { className: 'docs-soft' }, say('token_used')));
  });
  return make('div', {}, button);
}

const failure = (result, what, why) => result.replaceChildren(make('p', {}, make('span', { className: 'docs-status docs-bad' }, what), ` ${why}`));

/** Sends the request and shows what came back, or why nothing did. */
async function send(result, requested) {
  let url, options;
  try {
    [url, options] = requested();
  } catch {
    failure(result, say('not_sent'), say('not_sent_why'));
    return;
  }
  const began = performance.now();
  try {
    const answer = await fetch(url, options);
    const text = await answer.text();
    const took = Math.round(performance.now() - began);
    const tone = answer.ok ? 'good' : answer.status >= 500 ? 'bad' : 'warn';
    const json = parsed(text);
    const headers = [...answer.headers].map(([name, value]) => `${name}: ${value}`).join('\n');
    const block = (label, content) => make('figure', { className: 'docs-code' }, make('figcaption', {}, label), make('pre', { tabIndex: 0 }, make('code', {}, content)));
    result.replaceChildren(
      make('p', {}, make('span', { className: `docs-status docs-${tone}` }, `${answer.status} ${answer.statusText}`.trim()), ` ${say('in_ms', took)}`),
      ...(typeof json?.token === 'string' ? [tokenButton(json.token)] : []),
      block(say('body'), json === undefined ? text || say('nothing') : JSON.stringify(json, null, 2)),
      block(say('header_fields'), headers),
    );
  } catch (fault) {
    failure(result, say('no_answer'), say('is_running', fault.message));
  }
}

function tryForm(article) {
  const { path, methods, credentials } = article.dataset;
  const id = `try-${article.id}`;
  const parameters = [...article.querySelectorAll('[data-parameter]')].map((row) => parameterField(id, row));
  const body = bodyFields(id, article);
  const method = make('select', { id: `${id}-method` }, ...methods.split(' ').map((one) => make('option', {}, one)));
  const danger = methods === 'DELETE';
  const button = make('button', { className: danger ? 'danger' : 'first' }, say('send', methods.includes(' ') ? say('request') : methods));
  const result = make('div', { className: 'docs-result', role: 'status' });
  const form = make(
    'form',
    { className: 'docs-try' },
    make('h4', {}, say('try')),
    make('p', { className: 'docs-soft' }, say('try_text', location.host)),
    ...(credentials === undefined ? [] : [credentialFields(id)]),
    ...(methods.includes(' ') ? [labelled(method, say('method'))] : []),
    ...parameters.map(({ part }) => part),
    ...(body?.parts ?? []),
    make('div', {}, button),
    result,
  );
  form.addEventListener('submit', async (event) => {
    event.preventDefault();
    if (button.getAttribute('aria-disabled') === 'true') return;
    button.setAttribute('aria-disabled', 'true');
    await send(result, () => requestOf(path, method.value, parameters, body, credentials !== undefined));
    button.removeAttribute('aria-disabled');
  });
  return form;
}

function addTryButtons() {
  for (const article of root.querySelectorAll('.docs-operation[data-path]')) {
    const button = make('button', { type: 'button', className: 'docs-open', 'aria-label': `${say('try')}: ${article.querySelector('h3').firstChild.textContent.trim()}` }, say('try'));
    button.addEventListener('click', () => {
      const form = tryForm(article);
      button.replaceWith(form);
      form.querySelector('input, select, textarea, button').focus();
    });
    article.querySelector('.docs-answers').before(button);
  }
}

if (root) {
  for (const place of root.querySelectorAll('.docs-origin')) place.textContent = location.origin;
  credential.read();
  addSearch();
  prepareMenu();
  addCopyButtons();
  addTryButtons();
}
