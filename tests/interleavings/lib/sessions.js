// The kinds of sessions: SQL of another program, requests to an instance, or a command. Each has its name as the
// application_name of its database connections, by which the player finds them.

import { run } from '../../service/lib/reclaim.js';

const answerOf = (result) => {
  const last = Array.isArray(result) ? result.at(-1) : result;
  const values = last.rows.length === 1 ? Object.values(last.rows[0]) : [];
  if (values.length === 1) return String(values[0]);
  return `${last.command.toLowerCase()} ${last.rowCount ?? ''}`.trim();
};

/**
 * A connection of its own. A step is SQL, or makes SQL from what the set-up gave; it answers with the only value of its
 * last result, else with its command: "update 1", "commit", or "rollback" for a commit of a transaction that failed.
 */
export const sql = (steps) => ({
  steps,
  holdsLocks: true, // between two steps
  async open(scope, { db }, name, given) {
    const client = await db.session(scope, name);
    return async (step) => {
      try {
        return answerOf(await client.query(typeof step === 'function' ? step(given) : step));
      } catch (fault) {
        return `error: ${fault.message.replace(/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, 'UUID')}`;
      }
    };
  },
});

/** Requests to the instance of the session's name: async (server, given) => answer, as text. */
export const requests = (steps) => ({
  steps,
  open: async (_scope, { servers }, name, given) => (step) => step(servers[name], given),
});

/** A command of the program, each step its arguments; it answers with its last line. */
export const command = (steps) => ({
  steps,
  open: async (scope, { db, env }, name) => async (args) => {
    const { code, stdout, stderr } = await run(scope, args, { database: named(db, name), env });
    return code === 0 ? stdout.trim().split('\n').at(-1) : `exit ${code}: ${stderr}`;
  },
});

/** The database's address for connections of this session. */
export const named = (db, name) => `${db.url}&application_name=${name}`;

/** "200 frozen", "403 ACCOUNT_FROZEN": an answer's status, and its error or the state that it reports. */
export const brief = ({ status, json }) => `${status} ${json.error?.code ?? json.error ?? json.status ?? ''}`.trim();
