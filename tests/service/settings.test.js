// A wrong value stops the start with one line that names the setting, the value and what was expected.

import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { after, before, describe, it } from 'node:test';

import { probe } from './lib/http.js';
import { address, canaryKey, canaryPassword } from './lib/people.js';
import { temporaryDirectory } from './lib/place.js';
import { Cluster } from './lib/postgres.js';
import { run, serve } from './lib/reclaim.js';
import { Stage, stageOf } from './lib/stage.js';

const wrong = {
  RECLAIM_LISTEN: ['nonsense', '127.0.0.1', '127.0.0.1:99999', '127.0.0.1:-1', ':8080:', '127.0.0.1:http'],
  RECLAIM_OPS_LISTEN: ['nonsense', '300.0.0.1:80'],
  RECLAIM_WORKERS: ['0', '-1', 'two', '1.5', '100000', '99999999999999999999'],
  RECLAIM_CONTRACT: ['v9', 'CLEANUP-V1', ' cleanup-v1x'],
  RECLAIM_PROBE_HOLD_MS: ['-1', 'soon', '150ms', '1e3', '0x10', '99999999999'],
  RECLAIM_PROBE_HOLD_SIGMA_MS: ['-1', 'a bit'],
  RECLAIM_PROBE_TIMEOUT_MS: ['-1', 'never', '99999999999999999999'],
  RECLAIM_PREPARE: ['maybe', 'AUTO'],
  RECLAIM_MIGRATE: ['perhaps', '1'],
  RECLAIM_OWNERSHIP: ['companies', 'companies.', '.owner', 'companies; drop table x', 'a.b.c.d', 'companies.own er', 'x."y'],
  RECLAIM_TRUSTED_PROXIES: ['everyone', '10.0.0.0/99', '10.0.0.0/-1', '10.0.0/8', '2001:db8::/129', '10.0.0.0/8;10.0.0.1'],
  RECLAIM_CORS_ORIGINS: ['app.example.com', 'https://app.example.com/path', 'https://', 'javascript:alert(1)'],
  RECLAIM_DRAIN: ['30 seconds', '-1s', '3x'],
  RECLAIM_JWKS_FILE: ['/nowhere/jwks.json', '/dev/null'],
  RECLAIM_LOG_LEVEL: ['loud'],
  RECLAIM_MAX_CONNECTIONS: ['1', 'many'],
  RECLAIM_CONNECTIONS_PER_NETWORK: ['0', 'many'],
  RECLAIM_DATABASE_CONNECTIONS: ['0', 'many'],
  RECLAIM_MAIL_FROM: ['nobody', 'a@', 'Reclaim <a@example.com', 'a b@example.com'],
  RECLAIM_RESEND_URL: ['api.example.com', 'http://api.example.com/emails', 'ftp://127.0.0.1/', 'smtp://127.0.0.1'],
  RECLAIM_SENDGRID_URL: ['http://10.0.0.1/', 'file:///etc/passwd', 'http://127.0.0.1.example.com/'],
  RECLAIM_SMTP_URL: ['mail.example.com', 'https://mail.example.com', 'smtp://'],
  RECLAIM_AMQP_URL: ['mq.example.com', 'http://mq.example.com', 'amqp://', 'amqp://mq.example.com?verify=none'],
};

describe('settings', () => {
  const stage = new Stage();
  let db;
  before(async () => {
    const cluster = await Cluster.create(stage);
    db = await cluster.database(stage);
  });
  after(() => stage.end());

  const attempt = (t, env, args = []) =>
    run(t, ['serve', ...args], { database: db, env: { RECLAIM_LISTEN: '127.0.0.1:0', RECLAIM_OPS_LISTEN: '127.0.0.1:0', ...env } });

  for (const [name, values] of Object.entries(wrong))
    for (const value of values)
      it(`${name}=${value} stops the start in one line that says why`, async (t) => {
        const { code, stderr, stdout } = await attempt(t, { [name]: value });
        assert.equal(code, 1, stderr);
        assert.equal(stdout, '');
        const lines = stderr.trim().split('\n');
        assert.equal(lines.length, 1, stderr);
        assert.ok(lines[0].includes(name), `${lines[0]} does not name the setting`);
        const blamed = value.split(/[,;]/).some((part) => lines[0].includes(part.trim()));
        assert.ok(blamed, `${lines[0]} does not show the value`);
        assert.ok(lines[0].length > name.length + value.length + 15, `${lines[0]} does not say what was expected`);
      });

  for (const [name, value] of [
    ['RECLAIM_SECRET_KEY', 'canary-token-b5f1'],
    ['RECLAIM_DATABASE_URL', `http://reclaim:${canaryPassword}@localhost/x`],
    ['RECLAIM_DATABASE_URL', `postgresql://reclaim:${canaryPassword}@localhost:99999/x`],
    ['RECLAIM_DATABASE_DIRECT_URL', `postgresql://reclaim:${canaryPassword}@localhost/x?no_such_option=1`],
    ['RECLAIM_SMTP_URL', `http://reclaim:${canaryPassword}@mail.example.com`],
    ['RECLAIM_AMQP_URL', `http://reclaim:${canaryPassword}@mq.example.com`],
    ['RECLAIM_RESEND_URL', `http://reclaim:${canaryPassword}@api.example.com`],
  ])
    it(`a wrong ${name} is named, but what is secret in it is not shown`, async (t) => {
      const { code, stderr } = await attempt(t, { [name]: value });
      assert.equal(code, 1);
      assert.equal(stderr.trim().split('\n').length, 1, stderr);
      assert.ok(stderr.includes(name), stderr);
      assert.ok(!stderr.includes('canary'), stderr);
    });

  it('an external database needs a key, and the line says so', async (t) => {
    const { code, stderr } = await attempt(t, { RECLAIM_SECRET_KEY: null });
    assert.equal(code, 1);
    assert.match(stderr, /RECLAIM_SECRET_KEY/);
  });

  it('a mail provider needs someone whom mails come from, and the line says so', async (t) => {
    const { code, stderr } = await attempt(t, { RECLAIM_RESEND_API_KEY: 'canary-resend-key' });
    assert.equal(code, 1);
    assert.match(stderr, /RECLAIM_MAIL_FROM/);
    assert.ok(!stderr.includes('canary'), stderr);
  });

  it('an unknown name is warned about, with the name that was meant', async (t) => {
    const server = await serve(t, { database: db, env: { RECLAIM_PROBE_HOLDMS: '1', RECLAIM_NONSENSE: '1' } });
    const warnings = server.lines.filter((line) => line.level === 'warn').map((line) => JSON.stringify(line));
    assert.ok(warnings.some((line) => line.includes('RECLAIM_PROBE_HOLDMS') && line.includes('RECLAIM_PROBE_HOLD_MS')), warnings.join('\n'));
    assert.ok(warnings.some((line) => line.includes('RECLAIM_NONSENSE')));
    await server.stop();
  });

  it('no setting is warned about when every name is known', async (t) => {
    const server = await serve(t, { database: db, env: { RECLAIM_CORS_ORIGINS: '*', RECLAIM_TRUSTED_PROXIES: '10.0.0.0/8, 2001:db8::/32', RECLAIM_TEST_REQUEST_DEADLINE_MS: '5000' } });
    assert.deepEqual(server.events('settings'), []);
    await server.stop();
  });

  describe('in a file', () => {
    const write = (t, name, text) => {
      const file = path.join(temporaryDirectory(stageOf(t)), name);
      fs.writeFileSync(file, text, { mode: 0o600 });
      return file;
    };

    it('are read under the same names', async (t) => {
      const file = write(t, 'reclaim.ini', '; a comment\nRECLAIM_CONTRACT = registration-recovery\nRECLAIM_CORS_ORIGINS=https://app.example.com\n');
      const server = await serve(t, { database: db, args: ['--config', file] });
      const answer = await probe(server, 'x');
      assert.equal(answer.json.error.code, 'ORPHAN_CLEANUP_001');
      assert.equal((await probe(server, address('nobody'), { headers: { Origin: 'https://app.example.com' } })).headers['access-control-allow-origin'], 'https://app.example.com');
      await server.stop();
    });

    it('yield to the environment', async (t) => {
      const file = write(t, 'reclaim.ini', 'RECLAIM_CONTRACT=registration-recovery\n');
      const server = await serve(t, { database: db, args: ['--config', file], env: { RECLAIM_CONTRACT: 'cleanup-v1' } });
      assert.equal((await probe(server, 'x')).json.error.code, 'ORPHAN_CLEANUP_007');
      await server.stop();
    });

    it('are told with the file when they are wrong', async (t) => {
      const file = write(t, 'reclaim.ini', 'RECLAIM_CONTRACT=v9\n');
      const { code, stderr } = await attempt(t, {}, ['--config', file]);
      assert.equal(code, 1);
      assert.ok(stderr.includes('RECLAIM_CONTRACT') && stderr.includes('v9') && stderr.includes(file), stderr);
    });

    it('that is not there, or no INI, are refused with its name', async (t) => {
      const missing = await attempt(t, {}, ['--config', '/nowhere/reclaim.ini']);
      assert.equal(missing.code, 1);
      assert.ok(missing.stderr.includes('/nowhere/reclaim.ini'), missing.stderr);
      const odd = write(t, 'odd.ini', 'this is no setting\n');
      const refused = await attempt(t, {}, ['--config', odd]);
      assert.equal(refused.code, 1);
      assert.ok(refused.stderr.includes(odd), refused.stderr);
    });

    it('may hold a secret, read with NAME_FILE', async (t) => {
      const key = write(t, 'key', `${canaryKey}\n`);
      const server = await serve(t, { database: db, env: { RECLAIM_SECRET_KEY: null, RECLAIM_SECRET_KEY_FILE: key } });
      await server.stop();
      const url = write(t, 'url', `${db.url}\n`);
      const other = await serve(t, { env: { RECLAIM_DATABASE_URL_FILE: url } });
      await other.stop();
    });

    it('named by NAME_FILE that is not there is refused with its name', async (t) => {
      const { code, stderr } = await attempt(t, { RECLAIM_SECRET_KEY: null, RECLAIM_SECRET_KEY_FILE: '/nowhere/key' });
      assert.equal(code, 1);
      assert.ok(stderr.includes('RECLAIM_SECRET_KEY_FILE') && stderr.includes('/nowhere/key'), stderr);
    });
  });

  it('a port that is taken is named', async (t) => {
    const server = await serve(t, { database: db });
    const { host, port } = server.address('public');
    const { code, stderr } = await attempt(t, { RECLAIM_LISTEN: `${host}:${port}` });
    assert.equal(code, 1);
    assert.ok(stderr.includes(`${host}:${port}`), stderr);
    await server.stop();
  });

  it('IPv6 addresses are listened on', async (t) => {
    const server = await serve(t, { database: db, env: { RECLAIM_OPS_LISTEN: '[::1]:0' } });
    assert.equal(server.address('ops').host, '::1');
    await server.stop();
  });
});
