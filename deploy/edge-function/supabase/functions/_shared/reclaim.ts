// Hands the requests of an edge function on to Reclaim, and its answers back, byte for byte.
//
// Secrets of the project:
//   RECLAIM_URL             where Reclaim is: https://reclaim.example.com
//   RECLAIM_PROXY_KEY       the same as in Reclaim's settings: it is believed about the client's address for it
//   RECLAIM_CLIENT_ADDRESS  the header with the client's address; when not set cf-connecting-ip, which only Cloudflare in front
//                           of hosted projects writes. Elsewhere "x-forwarded-for 1": its last address, which the nearest proxy
//                           wrote, or "x-forwarded-for 2" behind two proxies.
//   RECLAIM_TIMEOUT_MS      how long Reclaim may take; 35000 when not set, longer than the 30 s after which it ends a
//                           deletion itself, so that its own answer says how that ended

/** What Reclaim reads of a request; credentials are not among it. */
const requestHeaders = ['accept', 'access-control-request-headers', 'access-control-request-method', 'content-type', 'origin', 'x-correlation-id'];

/** What belongs to the connection between Reclaim and this function. */
const connectionHeaders = ['connection', 'content-length', 'keep-alive', 'transfer-encoding'];

/** Reclaim answers 413 to more than 16 KiB: one byte more says it. */
const bodyMax = 16 * 1024 + 1;

const uuid = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

interface Environment {
  get(name: string): string | undefined;
}

interface Settings {
  url: string;
  key: string;
  client: { header: string; fromRight: number };
  timeoutMs: number;
}

function settingsOf(env: Environment): Settings {
  const read = (name: string, form: RegExp, standard?: string) => {
    const found = form.exec(env.get(name) ?? standard ?? '');
    if (!found) throw new Error(`${name} is not set, or not what it must be: supabase secrets set ${name}=…`);
    return found;
  };
  const [, header, fromRight = '1'] = read('RECLAIM_CLIENT_ADDRESS', /^([a-z0-9-]+)(?: ([1-9]))?$/i, 'cf-connecting-ip');
  return {
    url: read('RECLAIM_URL', /^(https?:\/\/[^/?#]+)\/*$/)[1],
    key: read('RECLAIM_PROXY_KEY', /^.{32,512}$/)[0],
    client: { header, fromRight: Number(fromRight) },
    timeoutMs: Number(read('RECLAIM_TIMEOUT_MS', /^[1-9][0-9]{0,5}$/, '35000')[0]),
  };
}

/** Counted from the right: what stands further left, the client may have written itself. */
function clientAddressOf(headers: Headers, { header, fromRight }: Settings['client']): string | undefined {
  return headers.get(header)?.split(',').at(-fromRight)?.trim() || undefined;
}

/** The rest of a long body is read, and dropped. */
async function bodyOf(request: Request) {
  if (!request.body) return undefined;
  const kept = new Uint8Array(bodyMax);
  let length = 0;
  for await (const part of request.body) {
    const fits = part.subarray(0, bodyMax - length);
    kept.set(fits, length);
    length += fits.length;
  }
  return kept.slice(0, length);
}

function correlationIdOf(request: Request, body: Uint8Array | undefined): string {
  let given: unknown;
  try {
    given = JSON.parse(new TextDecoder().decode(body)).correlationId;
  } catch {
    given = undefined;
  }
  const known = [given, request.headers.get('x-correlation-id')].find((id) => typeof id === 'string' && uuid.test(id));
  return (known as string | undefined)?.toLowerCase() ?? crypto.randomUUID();
}

/** Error 006 of either contract, as Reclaim writes it. */
function unreachable(status: number, correlationId: string): Response {
  const message = 'Something went wrong on our side. Please try again in a few seconds.';
  const error = { code: 'ORPHAN_CLEANUP_006', message, httpStatus: status };
  return Response.json(
    { success: false, message, correlationId, error },
    {
      status,
      headers: {
        'access-control-allow-origin': '*',
        'access-control-expose-headers': 'x-correlation-id, retry-after, x-ratelimit-limit, x-ratelimit-remaining, x-ratelimit-reset, ratelimit-policy, ratelimit',
        'cache-control': 'no-store',
        'x-content-type-options': 'nosniff',
        'x-correlation-id': correlationId,
      },
    },
  );
}

function headersFor(request: Request, settings: Settings): Headers {
  const headers = new Headers({ 'accept-encoding': 'identity', 'x-reclaim-proxy-key': settings.key });
  for (const name of requestHeaders) {
    const value = request.headers.get(name);
    if (value !== null) headers.set(name, value);
  }
  const client = clientAddressOf(request.headers, settings.client);
  if (client) headers.set('x-forwarded-for', client);
  else console.warn(`${settings.client.header} has no address: all clients share this function's limits (RECLAIM_CLIENT_ADDRESS)`);
  return headers;
}

/** The handler of the function with this name. */
export function passTo(name: string): (request: Request) => Promise<Response> {
  const settings = settingsOf(Deno.env);
  return async (request) => {
    const body = await bodyOf(request);
    try {
      const answer = await fetch(`${settings.url}/functions/v1/${name}`, {
        method: request.method,
        headers: headersFor(request, settings),
        body,
        redirect: 'manual',
        signal: AbortSignal.timeout(settings.timeoutMs),
      });
      const headers = new Headers(answer.headers);
      for (const own of connectionHeaders) headers.delete(own);
      const bytes = await answer.arrayBuffer();
      return new Response(bytes.byteLength > 0 ? bytes : null, { status: answer.status, headers });
    } catch (error) {
      console.error(`Reclaim did not answer: ${error instanceof Error ? error.name : 'unknown error'}`);
      return unreachable(name === 'check-email-status' ? 503 : 500, correlationIdOf(request, body));
    }
  };
}
