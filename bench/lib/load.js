// Runs the load generator (bench/load.c).

import { findTool, start } from './tool.js';

/**
 * So many callers, each sending its next request after the reply to the last. They start over spreadMs, then warmMs
 * pass before runMs are measured. A run of # in path, headers or body becomes a number below `numbers`. Returns {
 * ended, stop }: `ended` resolves to what load prints.
 */
export function startLoad(server, { path, body, headers = {}, callers, spreadMs = 0, warmMs = 0, runMs, numbers = 1 }) {
  const { host, port } = server.address();
  const args = ['--callers', callers, '--spread', spreadMs, '--warm', warmMs, '--run', runMs, '--numbers', numbers];
  if (body !== undefined) args.push('--body', body);
  for (const [name, value] of Object.entries(headers)) args.push('--header', `${name}: ${value}`);
  const { ended, stop } = start(findTool('load'), [...args, `${host}:${port}`, path]);
  const result = ended.then(JSON.parse);
  result.catch(() => {}); // a rejection is handled by the caller, possibly later
  return { ended: result, stop };
}
