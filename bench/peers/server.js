// A peer's limiter behind HTTP, with one process for each core. Takes one JSON object; prints its port when it is
// ready. Its replies have the head and body of Reclaim's, without a look-up.

import cluster from 'node:cluster';
import http from 'node:http';
import os from 'node:os';

import { openLimiter } from './limiters.js';

const which = JSON.parse(process.argv[2]);
const processes = os.cpus().length;

const common = {
  'Content-Type': 'application/json',
  'Cache-Control': 'no-store',
  'X-Content-Type-Options': 'nosniff',
  'X-Correlation-Id': '00000000-0000-4000-8000-000000000000',
  'Access-Control-Allow-Origin': '*',
  'X-RateLimit-Limit': '30',
  'X-RateLimit-Remaining': '0',
  'X-RateLimit-Reset': '1730040000',
  'RateLimit-Policy': '"probe";q=30;w=60',
  RateLimit: '"probe";r=0;t=45',
};
const found = JSON.stringify({
  data: { status: 'registered_unverified', verifiedAt: null, lastSignInAt: null, hasCompanyData: false, isOrphaned: true, correlationId: common['X-Correlation-Id'] },
});
const refused = JSON.stringify({
  success: false,
  correlationId: common['X-Correlation-Id'],
  error: { code: 'ORPHAN_CLEANUP_003', message: 'Too many requests. Please wait 45 seconds before trying again.', httpStatus: 429, retryAfter: 45 },
});

function answer(response, status, body, more) {
  response.writeHead(status, { ...common, ...more, 'Content-Length': Buffer.byteLength(body) }).end(body);
}

/** Clients are distinguished by the forwarded address, as in the settings of Reclaim. */
async function serve() {
  const limiter = await openLimiter({ ...which, connections: Math.max(1, Math.floor(which.connections / processes)) });
  const server = http.createServer((request, response) => {
    const parts = [];
    request.on('data', (part) => parts.push(part));
    request.on('end', async () => {
      try {
        JSON.parse(Buffer.concat(parts).toString('utf8'));
        if (await limiter.admits(request.headers['x-forwarded-for'] ?? '')) answer(response, 200, found);
        else answer(response, 429, refused, { 'Retry-After': '45' });
      } catch {
        answer(response, 503, '{}');
      }
    });
  });
  server.listen(0, '127.0.0.1');
}

if (cluster.isPrimary) {
  let listening = 0;
  for (let i = 0; i < processes; i++) cluster.fork();
  cluster.on('listening', (_, { port }) => ++listening === processes && console.log(port));
  cluster.on('exit', () => process.exit(1));
  process.once('SIGTERM', () => process.exit(0));
} else {
  process.once('disconnect', () => process.exit(0));
  await serve();
}
