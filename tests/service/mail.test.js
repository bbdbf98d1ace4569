// Codes on their way through providers that work, refuse, stall and break.
// takes long

import assert from 'node:assert/strict';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';

import { assertDeleted, assertRefused, assertSent, codeOf, logOf, requestCode, validate } from './lib/cleanup.js';
import { FakeProvider } from './lib/fake-provider.js';
import { FakeSmtp } from './lib/fake-smtp.js';
import { metric } from './lib/limits.js';
import { addUser } from './lib/people.js';
import { temporaryDirectory } from './lib/place.js';
import { Cluster } from './lib/postgres.js';
import { run, serve } from './lib/reclaim.js';
import { Stage, stageOf, until } from './lib/stage.js';

const stage = new Stage();
let cluster;
before(async () => {
  cluster = await Cluster.create(stage);
});
after(() => stage.end());

const took = (answer) => answer.answeredAt - answer.sentAt;
const itemsLeft = async (db) => (await db.query('select count(*)::int as n from reclaim.work_items'))[0].n;
const nothingLeft = (db) => until('nothing left to do', async () => (await itemsLeft(db)) === 0);

/** Both HTTP providers, Resend first, and a server that uses them. */
async function office(t, env = {}) {
  const db = await cluster.database(t);
  const resend = await FakeProvider.start(t, 'resend');
  const sendgrid = await FakeProvider.start(t, 'sendgrid');
  const server = await serve(t, { database: db, env: { ...resend.env, ...sendgrid.env, ...env } });
  return { db, resend, sendgrid, server };
}

describe('mail', { concurrency: 3 }, () => {
  it('goes to Resend as its API documents it', async (t) => {
    const { db, resend, sendgrid, server } = await office(t);
    const user = await addUser(db);
    const answer = assertSent(await requestCode(server, user.email), 'cleanup-v1');
    const { json, headers } = await resend.mailTo(user.email);
    assert.deepEqual(Object.keys(json).sort(), ['from', 'headers', 'html', 'subject', 'text', 'to']);
    assert.deepEqual([json.from, json.to, json.subject], ['Reclaim <reclaim@example.com>', [user.email], 'Your verification code']);
    assert.equal(json.headers['X-Entity-Ref-ID'], answer.json.correlationId);
    assert.match(headers['idempotency-key'], /^[0-9a-f]{32}$/);
    assert.equal(sendgrid.attempts.length, 0);
    await nothingLeft(db);
    assert.equal(await metric(server, 'reclaim_mail_tries_total', { provider: 'resend', outcome: 'delivered' }), 1);
    await server.stop();
  });

  it('goes to SendGrid as its API documents it', async (t) => {
    const db = await cluster.database(t);
    const sendgrid = await FakeProvider.start(t, 'sendgrid');
    const server = await serve(t, { database: db, env: { ...sendgrid.env, RECLAIM_PUBLIC_URL: 'https://reclaim.example.com/' } });
    const user = await addUser(db);
    const answer = assertSent(await requestCode(server, user.email), 'cleanup-v1');
    const { json, code, mail } = await sendgrid.mailTo(user.email);
    const link = `https://reclaim.example.com/recover#${code}`;
    assert.ok(mail.text.includes(` ${link}\r\n`) && mail.html.includes(`href="${link}"`), 'with the code where no server sees it');
    assert.deepEqual(json.personalizations, [{ to: [{ email: user.email }] }]);
    assert.deepEqual(json.from, { email: 'reclaim@example.com', name: 'Reclaim' });
    assert.deepEqual(json.content.map(({ type }) => type), ['text/plain', 'text/html'], 'plain text first, as the API asks');
    assert.deepEqual(json.tracking_settings, { click_tracking: { enable: false }, open_tracking: { enable: false } });
    assert.equal(json.headers['X-Entity-Ref-ID'], answer.json.correlationId);
    assertDeleted(await validate(server, user.email, code), 'cleanup-v1', user);
    await server.stop();
  });

  it('goes to an SMTP server with both parts', async (t) => {
    const db = await cluster.database(t);
    const smtp = await FakeSmtp.start(t);
    const server = await serve(t, { database: db, env: smtp.env });
    const user = await addUser(db);
    const answer = assertSent(await requestCode(server, user.email), 'cleanup-v1');
    const letter = await smtp.mailTo(user.email);
    assert.equal(letter.from, 'reclaim@example.com');
    assert.deepEqual(letter.to, [user.email]);
    assert.equal(letter.headers.to, user.email);
    assert.equal(letter.headers.from, `=?UTF-8?B?${Buffer.from('Réclaim').toString('base64')}?= <reclaim@example.com>`);
    assert.match(letter.headers['message-id'], /^<[0-9a-f]{32}@example\.com>$/);
    assert.ok(Date.parse(letter.headers.date) > 0);
    assert.deepEqual(letter.parts.map(({ type }) => type), ['text/plain', 'text/html']);
    for (const { text } of letter.parts) assert.ok(text.includes(letter.code) && text.includes(answer.json.correlationId));
    assertDeleted(await validate(server, user.email, letter.code), 'cleanup-v1', user);

    const german = await addUser(db);
    assertSent(await requestCode(server, german.email, {}, { headers: { 'Accept-Language': 'fr, de-AT;q=0.9, en;q=0.5' } }), 'cleanup-v1');
    const brief = await smtp.mailTo(german.email);
    assert.equal(brief.headers.subject, `=?UTF-8?B?${Buffer.from('Ihr Bestätigungscode').toString('base64')}?=`);
    const [text, html] = brief.parts.map((part) => part.text);
    assert.match(text, /^Ihr Bestätigungscode lautet\r\n\r\n {4}(\S+)\r\n\r\nEr gilt 5 Minuten und funktioniert einmal\./);
    assert.ok(html.includes('<html lang="de">') && html.includes(`>${brief.code}<`) && html.includes('Er gilt 5 Minuten'));
    assert.doesNotMatch(text + html, /href|https?:/, 'no link without RECLAIM_PUBLIC_URL');

    const other = await addUser(db);
    smtp.recipientReply = '450 later';
    assertSent(await requestCode(server, other.email), 'cleanup-v1');
    await server.line('a try failed', (line) => line.event === 'mail try failed' && line.status === 450);
    smtp.recipientReply = '250 ok';
    assertDeleted(await validate(server, other.email, (await smtp.mailTo(other.email)).code), 'cleanup-v1', other);
    await server.stop();
  });

  it('has the operator’s sentences, template, name and colour in place of ours', async (t) => {
    const db = await cluster.database(t);
    const folder = temporaryDirectory(stageOf(t));
    mkdirSync(join(folder, 'templates/mail'), { recursive: true });
    writeFileSync(join(folder, 'de.ini'), '[mail]\nrecovery_subject = Dein Code\nrecovery_warning = Sonst nichts; wirklich.\n');
    writeFileSync(join(folder, 'templates/mail/notice.html'), '{{brand}}');
    const resend = await FakeProvider.start(t, 'resend');
    const env = { ...resend.env, RECLAIM_TEXTS: folder, RECLAIM_LANGUAGE: 'de', RECLAIM_BRAND_NAME: 'Example & Söhne', RECLAIM_BRAND_COLOR: '#0a7d33' };
    const server = await serve(t, { database: db, env });
    const user = await addUser(db);
    assertSent(await requestCode(server, user.email, {}, { headers: { 'Accept-Language': '*' } }), 'cleanup-v1');
    const { mail } = await resend.mailTo(user.email);
    assert.equal(mail.subject, 'Dein Code');
    for (const part of [mail.text, mail.html]) assert.ok(part.includes('Sonst nichts; wirklich.') && part.includes('Er gilt 5 Minuten'));
    assert.ok(mail.html.includes('Example &amp; Söhne') && mail.html.includes('#0a7d33'));
    await server.stop();
  });

  it('cannot be sent with sentences that do not exist: the start names the file and the key', async (t) => {
    const folder = temporaryDirectory(stageOf(t));
    const start = () => run(t, ['serve'], { env: { RECLAIM_TEXTS: folder, RECLAIM_LISTEN: '127.0.0.1:0', RECLAIM_OPS_LISTEN: '127.0.0.1:0' } });
    writeFileSync(join(folder, 'de.ini'), '[mail]\ngreeting = Hallo\n');
    const unknown = await start();
    assert.deepEqual([unknown.code, unknown.stderr], [1, `reclaim: ${folder}/de.ini: there is no sentence called mail.greeting\n`]);
    writeFileSync(join(folder, 'de.ini'), '');
    mkdirSync(join(folder, 'templates/mail'), { recursive: true });
    writeFileSync(join(folder, 'templates/mail/code.html'), '<p>\n{{t mail.greeting}}');
    const template = await start();
    assert.deepEqual([template.code, template.stderr], [1, 'reclaim: template mail/code, line 2: there is no sentence `mail.greeting`\n']);
  });

  it('gets through at once when the first provider fails, whichever way', async (t) => {
    const { db, resend, sendgrid, server } = await office(t, { RECLAIM_HOLD_MS: '3000' });
    const ways = [{ status: 500 }, { status: 429 }, { status: 408 }, { status: 400 }, { status: 401 }, { status: 302 }, { close: true }, { cut: true, status: 500 }];
    resend.answer(...ways);
    const users = await Promise.all(ways.map(() => addUser(db)));
    const answers = await Promise.all(users.map((user) => requestCode(server, user.email)));
    for (const answer of answers) assertSent(answer, 'cleanup-v1');
    await Promise.all(
      users.map(async (user) => {
        const { code } = await sendgrid.mailTo(user.email);
        for (const attempt of resend.attempts.filter(({ mail }) => mail.to === user.email)) assert.equal(attempt.code, code);
        assertDeleted(await validate(server, user.email, code), 'cleanup-v1', user);
      }),
    );
    await nothingLeft(db);
    await server.stop();
  });

  it('is tried three times, unless refused for good, and then elsewhere, with the same code and key', async (t) => {
    const { db, resend, sendgrid, server } = await office(t);
    for (const [way, most] of [[{ status: 503 }, 3], [{ status: 422 }, 1]]) {
      resend.answer(way);
      const user = await addUser(db);
      assertSent(await requestCode(server, user.email), 'cleanup-v1');
      const { code } = await sendgrid.mailTo(user.email);
      const tries = resend.attempts.filter(({ mail }) => mail.to === user.email);
      assert.ok(tries.length >= 1 && tries.length <= most, `${tries.length} tries`);
      assert.equal(new Set(tries.map(({ key }) => key)).size, 1);
      for (const attempt of tries) assert.equal(attempt.code, code);
      assertDeleted(await validate(server, user.email, code), 'cleanup-v1', user);
    }
    assert.equal(await metric(server, 'reclaim_mail_tries_total', { provider: 'resend', outcome: 'refused' }), 1);
    assert.equal(await metric(server, 'reclaim_mail_tries_total', { provider: 'sendgrid', outcome: 'delivered' }), 2);
    await server.stop();
  });

  it('a 2xx answer is a delivery, whatever its body says', async (t) => {
    const { db, resend, sendgrid, server } = await office(t);
    for (const way of [{ body: 'garbage' }, { body: '' }, { body: '{"error":"x"}' }, { status: 202, body: '\u0000'.repeat(200_000) }]) {
      resend.answer(way);
      const user = await addUser(db);
      assertSent(await requestCode(server, user.email), 'cleanup-v1');
      await resend.mailTo(user.email);
    }
    await nothingLeft(db);
    assert.equal(resend.attempts.length, 4);
    assert.equal(sendgrid.attempts.length, 0);
    await server.stop();
  });

  it('a provider that says nothing does not keep the answer, and the mail goes elsewhere', async (t) => {
    const { db, resend, sendgrid, server } = await office(t, { RECLAIM_HOLD_MS: '300' });
    resend.answer({ silent: true }, { status: 400 });
    const user = await addUser(db);
    const answer = assertSent(await requestCode(server, user.email), 'cleanup-v1');
    assert.ok(took(answer) >= 300);
    const { code } = await sendgrid.mailTo(user.email);
    const [silent, refused] = resend.attempts;
    assert.ok(refused.at - silent.at >= 9_900, 'after the ten seconds of a try');
    assertDeleted(await validate(server, user.email, code), 'cleanup-v1', user);
    await server.stop();
  });

  it('success is told at the hold while providers take their time, and the mail arrives later', async (t) => {
    const { db, resend, server } = await office(t, { RECLAIM_HOLD_MS: '300' });
    resend.answer({ delayMs: 3000 });
    const users = await Promise.all(Array.from({ length: 8 }, () => addUser(db)));
    const answers = await Promise.all(users.map((user) => requestCode(server, user.email)));
    for (const [n, answer] of answers.entries()) {
      assertSent(answer, 'cleanup-v1');
      assert.ok(took(answer) >= 300);
      assert.deepEqual((await logOf(db, answer.json.correlationId)).map(({ status }) => status), ['pending']);
      assertDeleted(await validate(server, users[n].email, (await resend.mailTo(users[n].email)).code), 'cleanup-v1', users[n]);
    }
    await server.stop();
  });

  it('008 at the release time when all refuse at once: the code is dropped, delivery ends, the log says failed', async (t) => {
    const holdMs = 4000; // far longer than refusals take
    const { db, resend, sendgrid, server } = await office(t, { RECLAIM_HOLD_MS: String(holdMs) });
    const ways = [{ status: 500 }, { status: 429 }, { status: 400 }, { close: true }, { cut: true, status: 500 }];
    const users = await Promise.all(ways.map(() => addUser(db)));
    resend.answer(...ways);
    sendgrid.answer(...[...ways].reverse());
    const answers = await Promise.all(users.map((user) => requestCode(server, user.email)));
    const check = async (answer, n) => {
      assertRefused(answer, 'cleanup-v1', '008');
      assert.ok(took(answer) >= holdMs, `left after ${took(answer)} ms`);
      assert.equal(await codeOf(db, users[n].email), undefined);
      const rows = await logOf(db, answer.json.correlationId);
      assert.deepEqual(rows.map(({ step, status, error_code }) => [step, status, error_code]), [['request-code', 'failed', 'ORPHAN_CLEANUP_008']]);
      assertRefused(await validate(server, users[n].email, resend.attempts.find(({ mail }) => mail.to === users[n].email).code), 'cleanup-v1', '001');
    };
    await Promise.all(answers.map(check));
    await nothingLeft(db);
    for (const { json } of answers) {
      const events = await db.query('select kind, outcome, log_id from reclaim.auth_cleanup_events where correlation_id = $1 order by id', [json.correlationId]);
      assert.deepEqual(events.map(({ kind, outcome }) => `${kind} ${outcome}`), ['request-code code-sent', 'mail failed']);
      assert.equal(events[0].log_id, events[1].log_id);
    }
    assert.equal(resend.attempts.length, users.length, 'one try each');
    assert.equal(sendgrid.attempts.length, users.length);
    await server.stop();
  });

  it('008 also when the last refusal comes while the success is waiting for its instant already', async (t) => {
    const holdMs = 8000; // the success is made ready after four fifths of it
    const db = await cluster.database(t);
    const provider = await FakeProvider.start(t, 'resend');
    const server = await serve(t, { database: db, env: { ...provider.env, RECLAIM_HOLD_MS: String(holdMs) } });
    provider.answer({ status: 500, delayMs: 7000 });
    const user = await addUser(db);
    const answer = assertRefused(await requestCode(server, user.email), 'cleanup-v1', '008');
    assert.ok(took(answer) >= holdMs);
    await until('the code is dropped', async () => (await codeOf(db, user.email)) === undefined);
    await until('the log says failed', async () => (await logOf(db, answer.json.correlationId))[0].status === 'failed');
    await nothingLeft(db);
    assert.equal(provider.attempts.length, 1, 'delivery has ended');
    assert.equal(await metric(server, 'reclaim_cleanup_outcomes_total', { step: 'request-code', outcome: '008' }), 1);
    assert.equal(await metric(server, 'reclaim_cleanup_outcomes_total', { step: 'request-code', outcome: 'ok' }), 0);
    await server.stop();
  });

  it('a refusal that takes back its code leaves one asked for meanwhile alone', async (t) => {
    const db = await cluster.database(t);
    const [refusing, taking] = [await FakeProvider.start(t, 'resend'), await FakeProvider.start(t, 'sendgrid')];
    const slow = await serve(t, { database: db, env: { ...refusing.env, RECLAIM_HOLD_MS: '4000' } });
    const other = await serve(t, { database: db, env: taking.env });
    refusing.answer({ status: 500, delayMs: 1500 });
    const user = await addUser(db);
    const refused = requestCode(slow, user.email);
    await until('a code stored', async () => (await codeOf(db, user.email)) !== undefined);
    assertSent(await requestCode(other, user.email), 'cleanup-v1');
    assertRefused(await refused, 'cleanup-v1', '008');
    assertDeleted(await validate(other, user.email, (await taking.mailTo(user.email)).code), 'cleanup-v1', user);
    for (const server of [slow, other]) await server.stop();
  });
});
