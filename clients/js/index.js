// The client of a Reclaim server. index.d.ts describes what is offered.

export class ReclaimError extends Error {
  constructor(message, { code, status = 0, retryAfter, correlationId, body, cause }) {
    super(message, cause && { cause });
    this.name = 'ReclaimError';
    Object.assign(this, { code, status, retryAfter, correlationId, body });
  }
}

/** Retry-After in seconds; proxies may send a date. */
function secondsOf(header) {
  if (!header) return undefined;
  const seconds = /^\d+$/.test(header) ? Number(header) : Math.ceil((Date.parse(header) - Date.now()) / 1000);
  return seconds >= 0 ? seconds : undefined;
}

function sleep(seconds, signal) {
  return new Promise((resolve, reject) => {
    const stop = () => {
      clearTimeout(timer);
      reject(signal.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', stop);
      resolve();
    }, seconds * 1000);
    signal?.addEventListener('abort', stop, { once: true });
  });
}

/** Node 18 and pages that are not a secure context have no crypto.randomUUID; the id is for logs only. */
const newId = () =>
  globalThis.crypto?.randomUUID?.() ??
  'xxxxxxxx-xxxx-4xxx-8xxx-xxxxxxxxxxxx'.replace(/x/g, () => Math.floor(Math.random() * 16).toString(16));

const networkError = (cause, correlationId) =>
  new ReclaimError('The server could not be reached, or the connection broke off.', { code: 'NETWORK', cause, correlationId });

function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** The error that a response stands for: in the envelope of /functions/v1, as everywhere else, or of a proxy. */
function errorOf({ status, headers }, body, sentId) {
  const told = body?.error?.code ? body.error : { code: body?.error, message: body?.message };
  const known = typeof told.code === 'string';
  return new ReclaimError((known && told.message) || `The answer is not one of Reclaim's (status ${status}).`, {
    code: known ? told.code : 'UNEXPECTED_ANSWER',
    status,
    retryAfter: secondsOf(headers.get('retry-after')) ?? told.retryAfter,
    correlationId: body?.correlationId ?? headers.get('x-correlation-id') ?? sentId,
    body,
  });
}

/** Seconds to wait before a request is repeated; undefined if it must not be. A request that changes something is repeated
 * only after a 429, by which the server says that it did nothing. */
function waitAfter({ code, status, retryAfter }, tries, reads) {
  if (code === 'NETWORK') return reads ? 0.5 * 2 ** tries : undefined;
  return status === 429 || (status === 503 && reads) ? retryAfter : undefined;
}

export function createReclaim({ url, supabase, token, apiKey, customer: usual, retries = 2, maxWait = 10, fetch: customFetch } = {}) {
  const base = (url ?? supabase?.supabaseUrl)?.replace(/\/+$/, '');
  if (!base) throw new TypeError('createReclaim needs url or supabase');
  const fetch = (...all) => (customFetch ?? globalThis.fetch)(...all);

  async function accessToken() {
    if (token || !supabase) return typeof token === 'function' ? token() : token;
    if (supabase.accessToken) return supabase.accessToken(); // tokens of another identity provider
    return (await supabase.auth.getSession()).data.session?.access_token;
  }

  /** Calls `attempt` with a correlation id until it succeeds or must not be repeated. */
  async function repeat(attempt, { signal, correlationId }, reads) {
    const id = correlationId ?? newId();
    for (let tries = 0; ; tries++) {
      signal?.throwIfAborted();
      try {
        return await attempt(id, signal);
      } catch (error) {
        signal?.throwIfAborted();
        const wait = waitAfter(error, tries, reads);
        if (wait === undefined || wait > maxWait || tries >= retries) throw error;
        await sleep(wait, signal);
      }
    }
  }

  /** The response's JSON, or its bytes if it succeeded and they are asked for. */
  async function read(response, id, as = 'text') {
    let content;
    try {
      content = await response[response.ok ? as : 'text']();
    } catch (cause) {
      throw networkError(cause, id);
    }
    if (response.ok && as === 'blob') return content;
    const body = parsed(content);
    if (!response.ok || !body) throw errorOf(response, body, id);
    return body;
  }

  async function send(method, path, { id, signal, headers, body, as }) {
    const sent = { ...headers, ...(body && { 'content-type': 'application/json' }) };
    const response = await fetch(base + path, { method, headers: sent, body: body && JSON.stringify(body), signal }).catch((cause) => {
      throw networkError(cause, id);
    });
    return read(response, id, as);
  }

  /** One of the two functions: at `url`, or by the functions client of supabase-js. */
  async function invoke(name, body, id, signal) {
    if (url || !supabase) return send('POST', `/functions/v1/${name}`, { id, signal, body });
    const { data, error } = await supabase.functions.invoke(name, { body, signal });
    if (error?.context?.headers) return read(error.context, id);
    if (error) throw networkError(error.context ?? error, id);
    return data;
  }

  /** The id is sent in the body: proxies in front of functions need not allow a header for it. */
  const callFunction = (name, fields, options = {}, reads = false) =>
    repeat(
      async (id, signal) => {
        const answer = await invoke(name, { ...fields, correlationId: id }, id, signal);
        if (!answer?.data) throw errorOf({ status: 200, headers: new Headers() }, answer, id);
        return answer.data;
      },
      options,
      reads,
    );

  const call = (method, path, { customer = usual, ...options } = {}, more = {}) =>
    repeat(
      async (id, signal) => {
        const bearer = !apiKey && (await accessToken());
        const headers = {
          'x-correlation-id': id,
          ...(apiKey && { 'x-api-key': apiKey }),
          ...(bearer && { authorization: `Bearer ${bearer}` }),
          ...(customer && { 'x-reclaim-customer': customer }),
        };
        return send(method, path, { id, signal, headers, ...more });
      },
      options,
      method === 'GET',
    );

  /** The path of the customer that is meant: the one named, or the caller's oldest. */
  async function customerPath(options) {
    let id = options?.customer ?? usual;
    if (!id) {
      const { customers, user_id: user } = await call('GET', '/auth/session', options);
      id = customers?.[0]?.id ?? user;
    }
    return `/v1/customers/${encodeURIComponent(id)}`;
  }

  /** Ends the session of a deleted user here; the server has none of it any more. */
  async function signOut(userId) {
    try {
      const { session } = (await supabase.auth.getSession()).data;
      if (session && (!userId || session.user.id === userId)) await supabase.auth.signOut({ scope: 'local' });
    } catch {
      // no supabase-js, or no session of its own: the deletion has succeeded all the same
    }
  }

  return {
    probe: (email, options) => callFunction('check-email-status', { email }, options, true),
    requestCode: (email, options) => callFunction('cleanup-orphaned-user', { step: 'request-code', email }, options),

    async validateAndCleanup(email, verificationCode, options) {
      const deleted = await callFunction('cleanup-orphaned-user', { step: 'validate-and-cleanup', email, verificationCode }, options);
      await signOut(deleted.deletedUserId);
      return deleted;
    },

    async unregister(proof, options) {
      const customer = await call('POST', '/auth/unregister', options, { body: proof });
      if (customer.status === 'deleted') await signOut();
      return customer;
    },

    recover: (options) => call('DELETE', '/auth/unregister', options),
    account: async (options) => call('GET', await customerPath(options), options),
    export: async (options) => call('GET', `${await customerPath(options)}/export`, options, { as: 'blob' }),
  };
}
