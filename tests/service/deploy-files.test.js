// The files of deploy/ whose programs neither Debian nor npm has: Kong, Envoy, Compose. Their form, and that every path leads to
// where it is served.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { describe, it } from 'node:test';
import { parse } from 'yaml';

import { description } from './lib/openapi.js';
import { canaryKey, canaryJwtSecret, canaryPassword } from './lib/people.js';
import { repository, temporaryDirectory } from './lib/place.js';
import { run } from './lib/reclaim.js';

const read = (name) => fs.readFileSync(path.join(repository, 'deploy', name), 'utf8');

/** As far as Reclaim's additions depend on them, the gateway's files of a self-hosted Supabase. */
const supabase = {
  '.env': 'POSTGRES_PASSWORD=x\nSUPABASE_PUBLIC_URL=https://api.example.com\n',
  'volumes/api/envoy/cds.yaml': `resources:
  - '@type': type.googleapis.com/envoy.config.cluster.v3.Cluster
    name: rest
`,
  'volumes/api/envoy/lds.template.yaml': `resources:
  - name: supabase
    filter_chains:
      - filters:
          - typed_config:
              route_config:
                virtual_hosts:
                  - domains: ['*']
                    routes:
                      # Open routes
                      - match:
                          prefix: /auth/v1/verify
                      - name: functions-v1-all
                        match:
                          prefix: /functions/v1/
                      - name: rest-v1-protected
                        match:
                          prefix: /rest/v1/
                      - match:
                          prefix: /
              http_filters:
                - name: envoy.filters.http.cors
                - name: envoy.filters.http.rbac
                - name: envoy.filters.http.router
`,
  'volumes/api/kong.yml': `_format_version: '2.1'

services:
  ## Open routes
  - name: auth-v1-open
    url: http://auth:9999/verify
    routes:
      - name: auth-v1-open
        paths:
          - /auth/v1/verify
plugins: []
`,
};

function lay(t, files) {
  const folder = temporaryDirectory(t);
  for (const [name, text] of Object.entries(files)) {
    fs.mkdirSync(path.dirname(path.join(folder, name)), { recursive: true });
    fs.writeFileSync(path.join(folder, name), text);
  }
  return folder;
}

function add(folder, ...options) {
  const { status, stdout, stderr } = spawnSync(path.join(repository, 'deploy/compose/add-reclaim.sh'), [...options, folder], { encoding: 'utf8' });
  return { status, stdout, stderr, parsed: (name) => parse(fs.readFileSync(path.join(folder, 'volumes/api', name), 'utf8')) };
}

/** Where clients go, as the description and the pages have it; the gate and the ops listener are not for them. */
const served = Object.keys(description.paths)
  .filter((known) => !description.paths[known].servers && known !== '/gate' && !/^\/(test|mailbox)/.test(known) && known !== '/')
  .map((known) => known.replace(/\{[^}]+\}/g, '0b0e7a52-0000-4000-8000-000000000000'))
  .concat('/recover', '/account', '/account/sign-in', '/admin', '/admin/customers', '/docs', '/assets/page-0123456789.css', '/hooks/before-user-created');
const notOurs = ['/', '/auth/v1/token', '/auth/v1/verify', '/functions/v1/hello', '/rest/v1/things', '/storage/v1/object/x', '/realtime/v1/websocket', '/project/default', '/pg/query', '/gate'];

const envoyRoutes = (added) => added.resources[0].filter_chains[0].filters[0].typed_config.route_config.virtual_hosts[0].routes;
const envoyFilters = (added) => added.resources[0].filter_chains[0].filters[0].typed_config.http_filters;
const takes = ({ match }, target) => (match.safe_regex ? new RegExp(`^(?:${match.safe_regex.regex})$`).test(target) : target.startsWith(match.prefix));

describe('deploy/envoy and deploy/kong, added to a self-hosted Supabase', () => {
  it('every path of Reclaim leads to Reclaim, and no other', (t) => {
    const added = add(lay(t, supabase));
    assert.equal(added.status, 0, added.stderr);
    const routes = envoyRoutes(added.parsed('envoy/lds.reclaim.yaml'));
    const kong = added.parsed('kong.reclaim.yml').services;
    const envoyTakes = (target) => routes.find((route) => takes(route, target)).name === 'reclaim';
    const longest = (target) =>
      kong
        .flatMap(({ url, routes: own }) => own.flatMap(({ paths }) => paths.map((prefix) => ({ url, prefix }))))
        .concat({ url: 'others', prefix: '/' }, { url: 'others', prefix: '/auth/v1/' }, { url: 'others', prefix: '/functions/v1/' })
        .filter(({ prefix }) => target.startsWith(prefix))
        .sort((a, b) => b.prefix.length - a.prefix.length)[0];
    for (const target of served) {
      assert.ok(envoyTakes(target), `Envoy: ${target}`);
      assert.equal(longest(target).url, 'http://reclaim:8080', `Kong: ${target}`);
    }
    for (const target of notOurs) {
      assert.ok(!envoyTakes(target), `Envoy: ${target}`);
      assert.notEqual(longest(target).url, 'http://reclaim:8080', `Kong: ${target}`);
    }
  });

  it('what was there stays, in its order, and a second run changes nothing', (t) => {
    const folder = lay(t, supabase);
    const first = add(folder);
    const routes = envoyRoutes(first.parsed('envoy/lds.reclaim.yaml'));
    assert.deepEqual(routes.slice(1), envoyRoutes(parse(supabase['volumes/api/envoy/lds.template.yaml'])));
    assert.deepEqual(envoyFilters(first.parsed('envoy/lds.reclaim.yaml')).map(({ name }) => name.split('.').at(-1)), ['cors', 'rbac', 'router']);
    assert.deepEqual(first.parsed('envoy/cds.reclaim.yaml').resources.map(({ name }) => name), ['reclaim', 'rest']);
    assert.deepEqual(first.parsed('kong.reclaim.yml').services.map(({ name }) => name), ['reclaim', 'auth-v1-open']);
    const texts = () => ['envoy/lds.reclaim.yaml', 'envoy/cds.reclaim.yaml', 'kong.reclaim.yml'].map((name) => fs.readFileSync(path.join(folder, 'volumes/api', name), 'utf8'));
    const before = texts();
    assert.equal(add(folder).status, 0);
    assert.deepEqual(texts(), before);
    assert.deepEqual(fs.readdirSync(path.join(folder, 'volumes/api')).sort(), ['envoy', 'kong.reclaim.yml', 'kong.yml']);
    for (const page of ['recover', 'account', 'admin', 'docs']) assert.match(first.stdout, new RegExp(`https://api\\.example\\.com/${page}\\n`));
  });

  it('with --gate, requests with a user’s token are asked about, before the stack’s own route and behind its checks', (t) => {
    const added = add(lay(t, supabase), '--gate').parsed('envoy/lds.reclaim.yaml');
    assert.deepEqual(envoyFilters(added).map(({ name }) => name.split('.').at(-1)), ['cors', 'rbac', 'ext_authz', 'router']);
    const filter = envoyFilters(added)[2];
    assert.deepEqual([filter.disabled, filter.typed_config.failure_mode_allow, filter.typed_config.http_service.path_prefix], [true, false, '/gate']);
    const headersMatch = ({ match }, authorization) =>
      (match.headers ?? []).every(({ present_match: present, string_match: text, invert_match: inverted = false }) => {
        if (present) return authorization !== undefined;
        const same = text.exact === undefined ? authorization?.startsWith(text.prefix) : authorization === text.exact;
        return Boolean(same) !== inverted;
      });
    const asked = (authorization) => {
      const route = envoyRoutes(added).find((one) => takes(one, '/rest/v1/things') && headersMatch(one, authorization));
      assert.equal(route.name, 'rest-v1-protected');
      return Boolean(route.typed_per_filter_config?.['envoy.filters.http.ext_authz']);
    };
    for (const token of ['Bearer eyJ.a.b', 'bearer eyJ.a.b', 'Bearer  ${ANON_KEY}', 'Bearer ${ANON_KEY},Bearer eyJ.a.b', 'Basic x', '']) assert.ok(asked(token), token);
    for (const token of [undefined, 'Bearer ${ANON_KEY}', 'Bearer ${SERVICE_ROLE_KEY}', 'Bearer sb_publishable_x']) assert.ok(!asked(token), token);
  });

  it('a file of another form is left alone, and named', (t) => {
    const lds = 'volumes/api/envoy/lds.template.yaml';
    for (const text of ['', 'resources: []\n', supabase[lds].replace('routes:', 'paths:'), supabase[lds] + supabase[lds]]) {
      const folder = lay(t, { ...supabase, [lds]: text });
      const { status, stderr } = add(folder);
      assert.equal(status, 1);
      assert.match(stderr, /lds\.template\.yaml does not have the line "routes:" once: add .*routes\.yaml by hand/);
      assert.deepEqual(fs.readdirSync(path.join(folder, 'volumes/api/envoy')).sort(), ['cds.reclaim.yaml', 'cds.yaml', 'lds.template.yaml']);
    }
    assert.equal(add(lay(t, {})).status, 2);
    assert.equal(add(lay(t, { 'volumes/api/readme': '' })).status, 1);
  });

  it('names only clusters, services and ports that are there', () => {
    const cluster = parse(read('envoy/clusters.yaml'))[0];
    const { address, port_value: port } = cluster.load_assignment.endpoints[0].lb_endpoints[0].endpoint.address.socket_address;
    const { services } = parse(read('compose/docker-compose.reclaim.yml'));
    assert.deepEqual([address, `0.0.0.0:${port}`], [Object.keys(services)[0], services.reclaim.environment.RECLAIM_LISTEN]);
    for (const name of ['envoy/routes.yaml', 'envoy/gate-routes.yaml']) for (const { route } of parse(read(name))) assert.ok(['reclaim', 'rest'].includes(route.cluster));
    assert.equal(parse(read('kong/kong.yml')).services[0].url, `http://${address}:${port}`);
    assert.equal(parse(read('envoy/gate-filter.yaml'))[0].typed_config.http_service.server_uri.uri, `http://${address}:${port}`);
  });
});

describe('deploy/compose', () => {
  /** ${NAME}, ${NAME:-default} with names inside, ${NAME:?message}, as Compose replaces them. */
  function expanded(text, env) {
    const inner = /\$\{([A-Z_]+)(?::([-?])([^${}]*))?\}/g;
    const next = text.replace(inner, (whole, name, kind, rest) => {
      if (env[name]) return env[name];
      if (kind === '?') throw new Error(`${name}: ${rest}`);
      return rest ?? '';
    });
    return next === text ? text : expanded(next, env);
  }
  const { services } = parse(read('compose/docker-compose.reclaim.yml'));
  const settings = (env) => Object.fromEntries(Object.entries(services.reclaim.environment).map(([name, value]) => [name, expanded(value, env)]));
  // As in Supabase's .env.example.
  const example = {
    POSTGRES_PASSWORD: canaryPassword, POSTGRES_HOST: 'db', POSTGRES_PORT: '5432', POSTGRES_DB: 'postgres', JWT_SECRET: canaryJwtSecret,
    API_EXTERNAL_URL: 'http://localhost:8000', SUPABASE_PUBLIC_URL: 'http://localhost:8000', SITE_URL: 'http://localhost:3000',
    SMTP_ADMIN_EMAIL: 'admin@example.com', SMTP_HOST: 'supabase-mail', SMTP_PORT: '2500', SMTP_USER: 'fake_mail_user', SMTP_PASS: 'fake_mail_password', SMTP_SENDER_NAME: 'fake_sender',
    RECLAIM_SECRET_KEY: canaryKey, RECLAIM_OWNERSHIP: 'companies.owner_admin_uuid',
  };

  it('has settings that the program takes, with the values of Supabase’s own example', async (t) => {
    const env = settings(example);
    assert.equal(env.RECLAIM_DATABASE_URL, `postgresql://postgres:${canaryPassword}@db:5432/postgres`);
    const { stdout, stderr } = await run(t, ['doctor'], { env: { ...env, RECLAIM_DATABASE_URL: 'postgresql://127.0.0.1:1/none?connect_timeout=1' } });
    assert.match(stdout, /^ok +settings/m, stdout + stderr);
    assert.doesNotMatch(stdout + stderr, /RECLAIM_[A-Z_]+ is no setting/);
  });

  for (const name of ['RECLAIM_SECRET_KEY', 'RECLAIM_OWNERSHIP'])
    it(`asks for ${name}`, () => {
      assert.throws(() => settings({ ...example, [name]: undefined }), new RegExp(name));
    });

  it('mounts what add-reclaim.sh writes over what the stack mounts, and publishes no port', () => {
    const volumes = (name) => parse(read(`compose/${name}`)).services['api-gw'].volumes.map((volume) => volume.split(':').slice(0, 2));
    assert.deepEqual(volumes('docker-compose.reclaim-envoy.yml'), [
      ['./volumes/api/envoy/lds.reclaim.yaml', '/etc/envoy/lds.template.yaml'],
      ['./volumes/api/envoy/cds.reclaim.yaml', '/etc/envoy/cds.yaml'],
    ]);
    assert.deepEqual(volumes('docker-compose.reclaim-kong.yml'), [['./volumes/api/kong.reclaim.yml', '/home/kong/temp.yml']]);
    assert.equal(services.reclaim.ports, undefined);
    assert.equal(services.reclaim.image, 'reclaim:latest');
  });
});
