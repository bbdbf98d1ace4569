// Pages without a browser: a visitor who keeps cookies and sends forms.

import assert from 'node:assert/strict';

const originOf = (server) => {
  const { host, port } = server.address('public');
  return `http://${host}:${port}`;
};

const textOf = (html) => html.replaceAll('&quot;', '"').replaceAll('&lt;', '<').replaceAll('&gt;', '>').replaceAll('&amp;', '&');

const definedOf = (headers) => Object.fromEntries(Object.entries(headers).filter(([, value]) => value !== undefined));

export class Visitor {
  cookies = new Map();

  constructor(server) {
    this.origin = originOf(server);
  }

  async #fetch(path, options) {
    const cookie = [...this.cookies].map(([name, value]) => `${name}=${value}`).join('; ');
    const sentAt = performance.now();
    const answer = await fetch(this.origin + path, {
      redirect: 'manual',
      ...options,
      headers: { accept: 'text/html', ...(cookie && { cookie }), ...options.headers },
    });
    const tookMs = performance.now() - sentAt;
    for (const line of answer.headers.getSetCookie()) {
      const [, name, value] = line.match(/^([^=]+)=([^;]*)/);
      if (/Max-Age=0/.test(line)) this.cookies.delete(name);
      else this.cookies.set(name, value);
    }
    const body = await answer.text();
    return { status: answer.status, headers: answer.headers, body, tookMs };
  }

  async get(path) {
    this.page = await this.#fetch(path, {});
    this.token = this.page.body.match(/name="token" value="([0-9a-f]+)"/)?.[1] ?? this.token; // not every page has a form
    return this.page;
  }

  get heading() {
    return textOf(this.page.body.match(/<h1[^>]*>(.*?)<\/h1>/s)[1].replace(/<[^>]+>/g, ''));
  }

  /** Sends a form as the page that was read last would; `raw` is a body of its own. */
  async post(path, fields, { headers = {}, raw } = {}) {
    const body = raw ?? new URLSearchParams({ token: this.token, ...fields }).toString();
    return this.#fetch(path, {
      method: 'POST',
      body,
      headers: definedOf({ 'content-type': 'application/x-www-form-urlencoded', 'sec-fetch-site': 'same-origin', ...headers }),
    });
  }

  /** Sends it and reads the page that follows. */
  async send(path, fields) {
    const answer = await this.post(path, fields);
    assert.equal(answer.status, 303, answer.body);
    await this.get(answer.headers.get('location'));
    return answer;
  }
}
