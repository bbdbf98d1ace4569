// Races of the clean-up, a round at a time: the service tests run a few, the fault tests many.

import assert from 'node:assert/strict';

import { assertDeleted, codeOf, isThere, logOf, mailedCode, requestCode, validate } from './cleanup.js';
import { addUser } from './people.js';
import { pause } from './stage.js';

const numberOf = ({ json }) => json.error?.code.slice(-3);

/** Several concurrent requests with the right code, at several instances: one deletes, and one is logged. */
export async function typeTwice({ db, provider, servers }, contract, callers = 2) {
  const instances = Object.values(servers);
  const user = await addUser(db);
  const nth = provider.mailsTo(user.email).length + 1;
  const asked = await requestCode(instances[0], user.email);
  const { code } = await provider.mailTo(user.email, { nth });
  const answers = await Promise.all(Array.from({ length: callers }, (_, n) => validate(instances[n % instances.length], user.email, code)));
  const deleted = answers.filter(({ status }) => status === 200);
  const others = answers.filter(({ status }) => status !== 200).map(numberOf);
  assert.ok(deleted.length <= 1, `${deleted.length} said that they deleted`);
  // The others are told that a deletion is in progress, or that the code does not exist.
  assert.deepEqual(others.filter((number) => !['009', contract === 'cleanup-v1' ? '001' : '002'].includes(number)), []);
  assert.equal(deleted.length, 1, `nobody deleted: ${others}`);
  assertDeleted(deleted[0], contract, user);
  assert.equal(await isThere(db, user), false);
  const rows = await logOf(db, asked.json.correlationId);
  assert.deepEqual(rows.map(({ status }) => status), ['completed']);
}

/**
 * A registration completes while its orphan is being deleted: `begin` starts it in a session, `end` commits after a
 * random time. Either it completes and the user stays, or the user is deleted and never had a company.
 */
export async function completeMeanwhile({ db, provider, servers, session }, { ownership, waitMs = 0, random = Math.random }) {
  const server = Object.values(servers)[0];
  const user = await addUser(db, { confirmed: '2025-10-20T14:30:00Z' });
  const code = await mailedCode(server, provider, user.email);
  const register = async () => {
    await pause(random() * waitMs);
    try {
      await session.query('begin');
      await session.query(ownership, [user.id]);
      await pause(random() * waitMs);
      await session.query('commit');
      return true;
    } catch {
      await session.query('rollback');
      return false;
    }
  };
  const type = async () => {
    await pause(random() * waitMs);
    let answer;
    do answer = await validate(server, user.email, code);
    while (numberOf(answer) === '009'); // the registration did not commit in time on a slow machine
    return answer;
  };
  const [completed, answer] = await Promise.all([register(), type()]);
  const there = await isThere(db, user);
  const outcome = answer.status === 200 ? 'deleted' : numberOf(answer);
  assert.ok(['deleted', '005'].includes(outcome), answer.body);
  assert.equal(there, outcome !== 'deleted', `${outcome}, but the user is ${there ? '' : 'not '}there`);
  return { user, completed, outcome, code: await codeOf(db, user.email) };
}
