// Races of the clean-up, a round at a time: the service tests run a few, the fault tests many.

import assert from 'node:assert/strict';

import { assertDeleted, codeOf, isThere, logOf, mailedCode, requestCode, validate } from './cleanup.js';
import { addUser } from './people.js';
import { pause } from './stage.js';

const numberOf = ({ json }) => json.error?.code.slice(-3);

/** Several who have the right code type it at once, at several instances: one deletes, and the log tells of one. */
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
  // Whoever is second is told that it is under way, or that there is no such code any more.
  assert.deepEqual(others.filter((number) => !['009', contract === 'cleanup-v1' ? '001' : '002'].includes(number)), []);
  assert.equal(deleted.length, 1, `nobody deleted: ${others}`);
  assertDeleted(deleted[0], contract, user);
  assert.equal(await isThere(db, user), false);
  const rows = await logOf(db, asked.json.correlationId);
  assert.deepEqual(rows.map(({ status }) => status), ['completed']);
}

/**
 * A registration completes while its orphan is being deleted: `begin` starts it in a session, `end` commits after a
 * random while. Whoever completed is there, and was told so; whoever was deleted never had a company.
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
    while (numberOf(answer) === '009'); // a registration that the machine kept from committing in time
    return answer;
  };
  const [completed, answer] = await Promise.all([register(), type()]);
  const there = await isThere(db, user);
  const outcome = answer.status === 200 ? 'deleted' : numberOf(answer);
  assert.ok(['deleted', '005'].includes(outcome), answer.body);
  assert.equal(there, outcome !== 'deleted', `${outcome}, but the user is ${there ? '' : 'not '}there`);
  return { user, completed, outcome, code: await codeOf(db, user.email) };
}
