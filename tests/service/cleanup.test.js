// cleanup-orphaned-user: both steps, both contracts, every error.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, describe, it } from 'node:test';

import {
  assertDeleted,
  assertLogged,
  assertRefused,
  assertSent,
  cleanup,
  codeOf,
  contracts,
  hashOf,
  isThere,
  logOf,
  mailedCode,
  moveCode,
  requestCode,
  scene,
  validate,
  wrong,
} from './lib/cleanup.js';
import { addCoAdmin, addCompany, addUser, address } from './lib/people.js';
import { serve } from './lib/reclaim.js';
import { Stage, until } from './lib/stage.js';

const confirmed = '2025-10-20T14:30:00Z';
const stage = new Stage();
let cluster, db, provider, servers;
before(async () => {
  ({ cluster, db, provider, servers } = await scene(stage));
});
after(() => stage.end());

for (const [contract, promised] of Object.entries(contracts))
  describe(contract, () => {
    let server;
    before(() => {
      server = servers[contract];
    });

    const refused = (answer, number) => assertRefused(answer, contract, number);
    const code = (email) => mailedCode(server, provider, email);

    for (const [name, state] of [['never confirmed (case 1.1)', {}], ['confirmed (case 1.2)', { confirmed }]])
      it(`an orphan who ${name} is deleted with the code that was mailed, and can sign up again`, async () => {
        const user = await addUser(db, state);
        const asked = assertSent(await requestCode(server, user.email), contract);
        const stored = await codeOf(db, user.email);
        assert.equal(asked.json.data.expiresAt, stored.expires_at.toISOString());
        const [row] = await logOf(db, asked.json.correlationId);
        assert.equal(stored.expires_at - row.created_at >= promised.lifeMs, true);
        assert.equal(stored.expires_at - row.created_at < promised.lifeMs + 60_000, true);
        assert.deepEqual([row.step, row.status, row.error_code, row.email_hash], ['request-code', 'pending', null, hashOf(user.email)]);

        const { mail, code: typed } = await provider.mailTo(user.email);
        assert.match(typed, promised.code);
        assert.match(mail.text, new RegExp(`valid for ${promised.minutes} minutes`));
        for (const part of [mail.text, mail.html]) assert.ok(part.includes(asked.json.correlationId) && part.includes(typed));
        assert.match(mail.html, new RegExp(`monospace[^>]*font-size:\\d{2}px[^>]*>${typed}<`));
        assert.match(mail.text, /ignore this mail/);

        const correlationId = randomUUID();
        assertDeleted(await validate(server, user.email, typed, { correlationId }), contract, user);
        assert.equal(await isThere(db, user), false);
        assert.equal(await codeOf(db, user.email), undefined);
        const rows = await logOf(db, asked.json.correlationId);
        assert.deepEqual(rows.map(({ status, error_code }) => [status, error_code]), [['completed', null]]);
        assert.equal(rows[0].orphan_classification, state.confirmed ? 'case_1_2' : 'case_1_1');
        assert.ok(rows[0].updated_at > rows[0].created_at);
        assert.deepEqual(await logOf(db, correlationId), [], 'the deletion completes the row of the request, and adds none');

        const again = await addUser(db, { email: user.email });
        refused(await validate(server, user.email, typed), promised.gone);
        assert.equal(await isThere(db, again), true);
      });

    it('nobody else of that address is touched: single sign-on twins and soft-deleted users stay', async () => {
      const user = await addUser(db, { confirmed });
      const twin = await addUser(db, { email: user.email, sso: true, confirmed });
      await addCompany(db, twin);
      assertDeleted(await validate(server, user.email, await code(user.email)), contract, user);
      assert.equal(await isThere(db, twin), true);
      assertRefused(await requestCode(server, user.email), contract, '004');
      const deleted = await addUser(db, { deleted: confirmed });
      refused(await requestCode(server, deleted.email), '004');
      assert.equal(await isThere(db, deleted), true);
    });

    it('an address is known however it is written', async () => {
      const user = await addUser(db);
      const typed = await code(user.email);
      assertDeleted(await validate(server, ` \t\n${user.email.toUpperCase()}\r\n `, typed), contract, user);
    });

    it('002: a wrong code is refused, logged, and deletes nobody', async () => {
      const user = await addUser(db);
      const typed = await code(user.email);
      const answer = refused(await validate(server, user.email, wrong(typed)), '002');
      await assertLogged(db, answer, user.email, 'validate-and-cleanup', '002');
      assert.equal((await codeOf(db, user.email)).tries, 1);
      assert.equal(await isThere(db, user), true);
      assertDeleted(await validate(server, user.email, typed), contract, user);
    });

    it('a code has three tries, and is used up then even for who has it', async () => {
      const user = await addUser(db);
      const typed = await code(user.email);
      for (let n = 1; n <= 3; n++) refused(await validate(server, user.email, wrong(typed, n)), '002');
      const answer = refused(await validate(server, user.email, typed), promised.gone);
      await assertLogged(db, answer, user.email, 'validate-and-cleanup', promised.gone);
      assert.equal((await codeOf(db, user.email)).tries, 3);
      assert.equal(await isThere(db, user), true);
      assertDeleted(await validate(server, user.email, await code(user.email)), contract, user);
    });

    it('of many guesses at once three at most are looked at', async () => {
      const user = await addUser(db);
      const typed = await code(user.email);
      const answers = await Promise.all(Array.from({ length: 40 }, (_, n) => validate(server, user.email, wrong(typed, 1 + (n % 9)))));
      const numbers = answers.map(({ json }) => json.error.code.slice(-3));
      assert.deepEqual(numbers.filter((number) => !['009', '002', promised.gone].includes(number)), []);
      assert.ok((await codeOf(db, user.email)).tries <= 3);
      assert.equal(await isThere(db, user), true);
    });

    it('a new code replaces the old one', async () => {
      const user = await addUser(db);
      const first = await code(user.email);
      refused(await validate(server, user.email, wrong(first)), '002');
      const second = await code(user.email);
      assert.notEqual(second, first);
      assert.equal((await codeOf(db, user.email)).tries, 0, 'with three tries of its own');
      refused(await validate(server, user.email, first), '002');
      assertDeleted(await validate(server, user.email, second), contract, user);
    });

    it(`${promised.gone}: a code that has expired, or that nobody asked for`, async () => {
      const user = await addUser(db);
      const typed = await code(user.email);
      await moveCode(db, user.email, `-${promised.minutes} minutes`);
      const answer = refused(await validate(server, user.email, typed), promised.gone);
      await assertLogged(db, answer, user.email, 'validate-and-cleanup', promised.gone);
      for (const email of [(await addUser(db)).email, address('nobody')]) {
        const never = refused(await validate(server, email, typed), promised.gone);
        await assertLogged(db, never, email, 'validate-and-cleanup', promised.gone);
      }
      assert.equal(await isThere(db, user), true);
    });

    it('a code is its address’s own', async () => {
      const [one, other] = [await addUser(db), await addUser(db)];
      const typed = await code(one.email);
      await code(other.email);
      refused(await validate(server, other.email, typed), '002');
      assert.equal(await isThere(db, other), true);
    });

    it('004: an address nobody registered, or whose user went away or was followed by another', async () => {
      const nobody = address('nobody');
      const answer = refused(await requestCode(server, nobody), '004');
      await assertLogged(db, answer, nobody, 'request-code', '004');
      assert.equal(await codeOf(db, nobody), undefined);

      const user = await addUser(db);
      let typed = await code(user.email);
      await db.query('delete from auth.users where id = $1', [user.id]);
      const gone = refused(await validate(server, user.email, typed), '004');
      await assertLogged(db, gone, user.email, 'validate-and-cleanup', '004');
      const next = await addUser(db, { email: user.email });
      refused(await validate(server, user.email, typed), '004');
      assert.equal(await isThere(db, next), true, 'a code deletes the user for whom it was asked, no other');
      typed = await code(next.email);
      assertDeleted(await validate(server, next.email, typed), contract, next);
      assert.deepEqual(provider.mailsTo(nobody), []);
    });

    it('005: owners and co-administrators, also those who became so after asking', async () => {
      const owner = await addUser(db, { confirmed });
      const company = await addCompany(db, owner);
      const admin = await addUser(db);
      await addCoAdmin(db, admin, company);
      for (const { email } of [owner, admin]) {
        const answer = refused(await requestCode(server, email), '005');
        await assertLogged(db, answer, email, 'request-code', '005');
        assert.deepEqual(provider.mailsTo(email), []);
      }
      for (const complete of [(user) => addCompany(db, user), (user) => addCoAdmin(db, user, company)]) {
        const late = await addUser(db, { confirmed });
        const typed = await code(late.email);
        await complete(late);
        const answer = refused(await validate(server, late.email, typed), '005');
        await assertLogged(db, answer, late.email, 'validate-and-cleanup', '005');
        assert.equal(await isThere(db, late), true);
      }
    });

    it(`${promised.malformed}: what is no request is said to be none, and neither logged nor mailed`, async () => {
      const { email } = await addUser(db);
      const good = contract === 'cleanup-v1' ? 'ABCD-EFGH' : '123456';
      const [{ n }] = await db.query('select count(*)::int as n from reclaim.auth_cleanup_log');
      const bodies = [
        '',
        'x',
        '[]',
        'null',
        '"request-code"',
        '{"step":"request-code"',
        {},
        { step: 'request-code' },
        { email },
        { step: 'request-code', email: 5 },
        { step: 'request-code', email: null },
        { step: 'request-code', email: '' },
        { step: 'request-code', email: 'nobody' },
        { step: 'request-code', email: 'a@b' },
        { step: 'request-code', email: `${'a'.repeat(60)}@${'b'.repeat(60)}.${'c'.repeat(60)}.${'d'.repeat(60)}.${'e'.repeat(60)}.com` },
        { step: 'request-code', email: 'gr\u00fcn@example.com' },
        { step: 'Request-Code', email },
        { step: 'delete', email },
        { step: 1, email },
        { step: 'request-code', email, correlationId: 'x' },
        { step: 'request-code', email, correlationId: 7 },
        { step: 'validate-and-cleanup', email },
        { step: 'validate-and-cleanup', email, verificationCode: 123456 },
        { step: 'validate-and-cleanup', email, verificationCode: '' },
        { step: 'validate-and-cleanup', email, verificationCode: `${good}2` },
        { step: 'validate-and-cleanup', email, verificationCode: good.slice(1) },
        { step: 'validate-and-cleanup', verificationCode: good },
        `{"step":"request-code","email":"${email}","email":"${email}"}`,
        `{"step":"request-code","step":"request-code","email":"${email}"}`,
        `{"step":"request-code","email":"${email}","other":{"a":1,"a":2}}`,
        `{"step":"request-code","email":"${email}"} x`,
        `{"step":"request-code","email":"${email.replace('@', '\\u0000@')}"}`,
        Buffer.from(`{"step":"request-code","email":"\xff${email}"}`, 'latin1'),
      ];
      for (const body of bodies) refused(await cleanup(server, body), promised.malformed);
      assert.deepEqual(await db.query('select count(*)::int as n from reclaim.auth_cleanup_log'), [{ n }]);
      assert.equal(await codeOf(db, email), undefined);
    });

    it('a malformed body is answered with each field that is wrong and what is wrong, and with nothing of the request', async () => {
      const { email } = await addUser(db);
      const canary = 'canary7341';
      const step = 'request-code';
      const missing = { email: 'email is missing.', step: 'step is missing.', verificationCode: 'verificationCode is missing.' };
      const noStep = { step: 'step must be request-code or validate-and-cleanup.' };
      const noCode = { verificationCode: `verificationCode must be the ${contract === 'cleanup-v1' ? 'letters and digits' : 'digits'} of the code, as mailed.` };
      const noObject = (why) => ({ body: `The body is not one JSON object: ${why}.` });
      const cases = [
        [{}, { email: missing.email, step: missing.step }],
        [{ step }, { email: missing.email }],
        [{ step, email: 5 }, { email: 'email must be a string.' }],
        [{ step, email: `${canary.repeat(30)}@example.com` }, { email: 'email is longer than 255 bytes.' }],
        [{ step, email: canary }, { email: 'email is not an e-mail address.' }],
        [{ step: canary, email }, noStep],
        [{ step: 7, email }, { step: 'step must be a string.' }],
        [{ step, email, correlationId: canary }, { correlationId: 'correlationId must be a UUID.' }],
        [{ step, email, correlationId: null }, { correlationId: 'correlationId must be a UUID.' }],
        [{ step: 'validate-and-cleanup', email }, { verificationCode: missing.verificationCode }],
        [{ step: 'validate-and-cleanup', email, verificationCode: 123456 }, { verificationCode: 'verificationCode must be a string.' }],
        [{ step: 'validate-and-cleanup', email, verificationCode: canary }, noCode],
        [{ step: canary, email: canary, correlationId: canary }, { correlationId: 'correlationId must be a UUID.', email: 'email is not an e-mail address.', ...noStep }],
        ['[]', noObject('not an object')],
        ['', noObject('it ends too early')],
        [`{"${canary}":1,"${canary}":2}`, noObject('a key stands there twice')],
        [`{"step":${canary}}`, noObject('not JSON')],
      ];
      for (const [body, expected] of cases) {
        const answer = refused(await cleanup(server, body), promised.malformed);
        assert.deepEqual(Object.fromEntries(answer.json.error.details.map(({ field, message }) => [field, message.replace(/, at line \d+, column \d+/, '')])), expected, JSON.stringify(body));
        assert.ok(!answer.body.includes(canary));
      }
      const headers = { Accept: 'application/problem+json' };
      const { details } = JSON.parse((await cleanup(server, { step }, { headers })).body);
      assert.deepEqual(details, [{ field: 'email', message: missing.email }]);
      const probed = await cleanup(server, { email: 1 }, { path: '/functions/v1/check-email-status' });
      assert.deepEqual(probed.json.error.details, [{ field: 'email', message: 'email must be a string.' }]);
    });

    it('fields that it does not know are ignored', async () => {
      const user = await addUser(db);
      assertSent(await requestCode(server, user.email, { verificationCode: 5, extra: [{ deep: true }], '': null }), contract);
      const { code: typed } = await provider.mailTo(user.email);
      assertDeleted(await validate(server, user.email, typed, { extra: 'x' }), contract, user);
    });

    it('008: without a provider no code can be sent', async (t) => {
      const mute = await serve(t, { database: db, env: { RECLAIM_CONTRACT: contract } });
      assert.equal(mute.events('no mail provider is set: codes cannot be sent').length, 1);
      const user = await addUser(db);
      const answer = refused(await requestCode(mute, user.email), '008');
      await assertLogged(db, answer, user.email, 'request-code', '008');
      assert.equal(await codeOf(db, user.email), undefined);
      refused(await requestCode(mute, address('nobody')), '004');
      await mute.stop();
    });

    it('the body’s correlation id counts before the header’s, the header’s before one made', async () => {
      const [body, header] = [randomUUID(), randomUUID()];
      const options = { headers: { 'X-Correlation-Id': header } };
      const idOf = ({ json, headers }) => {
        assert.equal(headers['x-correlation-id'], json.correlationId);
        return json.correlationId;
      };
      const nobody = address('nobody');
      assert.equal(idOf(await requestCode(server, nobody, { correlationId: body }, options)), body);
      assert.equal(idOf(await requestCode(server, nobody, {}, options)), header);
      assert.equal(idOf(await cleanup(server, '{}', options)), header);
      assert.equal(idOf(await cleanup(server, { correlationId: body, step: 'x' }, options)), body);
      const made = idOf(await requestCode(server, nobody, {}, { headers: { 'X-Correlation-Id': 'nonsense' } }));
      assert.ok(![body, header].includes(made));
      const mixed = randomUUID().replace(/-4/, '-1').toUpperCase(); // any version, any case
      assert.equal(idOf(await requestCode(server, nobody, { correlationId: mixed })).toLowerCase(), mixed.toLowerCase());
      assert.equal((await logOf(db, mixed)).length, 1);
    });

    it('problem+json is given to who asks for it', async () => {
      const nobody = address('nobody');
      const answer = await requestCode(server, nobody, {}, { headers: { Accept: 'application/problem+json' } });
      assert.equal(answer.status, 404);
      assert.equal(answer.headers['content-type'], 'application/problem+json');
      const problem = JSON.parse(answer.body);
      assert.deepEqual([problem.status, problem.code], [404, 'ORPHAN_CLEANUP_004']);
      assert.equal(problem.correlationId, answer.headers['x-correlation-id']);
      const malformed = await cleanup(server, '{', { headers: { Accept: 'application/problem+json, */*;q=0.1' } });
      assert.equal(JSON.parse(malformed.body).code, `ORPHAN_CLEANUP_${promised.malformed}`);
      const user = await addUser(db);
      const sent = await requestCode(server, user.email, {}, { headers: { Accept: 'application/problem+json' } });
      assertSent(sent, contract);
    });
  });

describe('the shape of codes', () => {
  it('cleanup-v1 forgives case, spaces and hyphens; I and O are wrong, 0, 1 and other lengths malformed', async () => {
    const server = servers['cleanup-v1'];
    const user = await addUser(db);
    const ways = [
      (code) => code.toLowerCase(),
      (code) => code.replace('-', ''),
      (code) => code.replace('-', ' '),
      (code) => `  ${code.replace('-', ' - ')}\n`,
      (code) => [...code.replace('-', '')].join(' '),
    ];
    for (const way of ways) {
      const owner = await addUser(db);
      assertDeleted(await validate(server, owner.email, way(await mailedCode(server, provider, owner.email))), 'cleanup-v1', owner);
    }
    const typed = await mailedCode(server, provider, user.email);
    for (const code of ['IIII-OOOO', 'ABCD-EFGI', 'oiOI-oiOI']) assertRefused(await validate(server, user.email, code), 'cleanup-v1', '002');
    const malformed = ['0BCD-EFGH', 'ABCD-EFG1', 'ABCD-EFG', 'ABCD-EFGHJ', 'ABCD_EFGH', 'ABCD-EFG\u00c4', 'ABCD-EFG\u0130', '\u0410BCD-EFGH', '--------', '        '];
    for (const code of malformed) assertRefused(await validate(server, user.email, code), 'cleanup-v1', '007');
    assert.equal((await codeOf(db, user.email)).tries, 3, 'a malformed code takes no try');
    assertRefused(await validate(server, user.email, typed), 'cleanup-v1', '001');
  });

  it('registration-recovery takes six digits and nothing else', async () => {
    const server = servers['registration-recovery'];
    const user = await addUser(db);
    const typed = await mailedCode(server, provider, user.email);
    for (const code of ['12345', '1234567', '12345a', '123-456', '123 456', '\u0661\u0662\u0663\u0664\u0665\u0666', '+12345', '-12345', '1e5', '1234.5'])
      assertRefused(await validate(server, user.email, code), 'registration-recovery', '001');
    assert.equal((await codeOf(db, user.email)).tries, 0);
    assertDeleted(await validate(server, user.email, typed), 'registration-recovery', user);
  });

  it('codes are all different, and use every symbol', async () => {
    for (const [contract, server] of Object.entries(servers)) {
      const users = [];
      for (let n = 0; n < 40; n++) users.push(await addUser(db));
      const codes = await Promise.all(users.map((user) => mailedCode(server, provider, user.email)));
      for (const code of codes) assert.match(code, contracts[contract].code);
      if (contract === 'cleanup-v1') assert.equal(new Set(codes).size, codes.length);
      // Of 320 draws from 32 symbols, or 240 from 10, chance leaves out four, or one, less than once in 10^9 runs.
      const symbols = new Set(codes.join('').replaceAll('-', ''));
      assert.ok(symbols.size >= (contract === 'cleanup-v1' ? 29 : 10), [...symbols].sort().join(''));
    }
  });
});

describe('what is kept', () => {
  it('expired codes and old log rows go when an instance begins to lead', async (t) => {
    const fresh = await scene(t, { cluster, only: ['cleanup-v1'] });
    const first = fresh.servers['cleanup-v1'];
    const users = [await addUser(fresh.db), await addUser(fresh.db), await addUser(fresh.db)];
    for (const user of users) await mailedCode(first, fresh.provider, user.email);
    await first.stop();
    await moveCode(fresh.db, users[0].email, '-1 day');
    await moveCode(fresh.db, users[1].email, '-1 day');
    await fresh.db.query(`update reclaim.auth_cleanup_log set created_at = created_at - interval '31 days' where email_hash = $1`, [hashOf(users[0].email)]);
    await fresh.db.query(`update reclaim.auth_cleanup_log set created_at = created_at - interval '29 days' where email_hash = $1`, [hashOf(users[1].email)]);
    await fresh.db.query(
      `insert into reclaim.auth_cleanup_events (kind, outcome, detail, created_at)
         values ('mail', 'sent', 'old', now() - interval '31 days'), ('mail', 'sent', 'kept', now() - interval '29 days');
       insert into reclaim.work_items (kind, state, payload, updated_at)
         values ('mail', 'dead', '{"n":1}', now() - interval '31 days'), ('mail', 'dead', '{"n":2}', now() - interval '29 days'),
           ('hangup', 'dead', '{"n":3}', now() - interval '31 days')`,
    );
    await fresh.db.query(
      `insert into reclaim.auth_cleanup_reasons (log_id, actor, reason, created_at) values (1, 'operator', 'old', now() - interval '31 days'), (2, 'operator', 'young', now() - interval '29 days')`,
    );
    await serve(t, { database: fresh.db, env: { ...fresh.provider.env, RECLAIM_AUDIT_RETENTION: '30d' } });
    await until('expired codes gone', async () => !(await codeOf(fresh.db, users[0].email)) && !(await codeOf(fresh.db, users[1].email)));
    assert.ok(await codeOf(fresh.db, users[2].email), 'one that is still good stays');
    const logged = async () => (await fresh.db.query('select email_hash from reclaim.auth_cleanup_log order by id')).map((row) => row.email_hash);
    await until('old log rows gone', async () => (await logged()).length === 2);
    assert.deepEqual(await logged(), [hashOf(users[1].email), hashOf(users[2].email)]);
    const left = async (column, table) => (await fresh.db.query(`select ${column} as left from ${table} order by 1`)).map((row) => row.left);
    await until('old mails gone', async () => !(await left(`payload->>'n'`, 'reclaim.work_items')).includes('1'));
    assert.deepEqual(await left(`payload->>'n'`, 'reclaim.work_items'), ['2', '3']);
    assert.deepEqual(await left('detail', `reclaim.auth_cleanup_events where detail in ('old', 'kept')`), ['kept']);
    assert.deepEqual(await fresh.db.query('select reason from reclaim.auth_cleanup_reasons'), [{ reason: 'young' }]);
  });

  it('no address and no code is in any table but the users’ own', async () => {
    const tables = await db.query(`select format('%I.%I', schemaname, tablename) as name from pg_tables where schemaname = 'reclaim'`);
    const codes = provider.delivered.map(({ code }) => code);
    assert.ok(codes.length > 100 && tables.length > 4);
    for (const { name } of tables) {
      const text = JSON.stringify(await db.query(`select t::text from ${name} t`)).toLowerCase();
      assert.ok(!text.includes('canary'), name);
      const spelt = codes.filter((code) => code.includes('-') && (text.includes(code.toLowerCase()) || text.includes(code.replace('-', '').toLowerCase())));
      assert.deepEqual(spelt, [], name);
    }
    for (const server of Object.values(servers)) {
      const log = JSON.stringify(server.lines);
      for (const code of codes) if (code.includes('-')) assert.ok(!log.includes(code) && !log.includes(code.replace('-', '')), 'a code in the log');
      assert.ok(!log.includes(provider.apiKey));
    }
  });
});
