import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFileSync, statSync } from 'node:fs';
import { appendFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { createKey } from '@svc/server/keys';
import { claimOnce, provedBy, type Claim } from '../claim.ts';
import type { Json } from '../ground.ts';
import { optionedServer } from '../optioned-server.ts';
import { plainBox } from './record.ts';

const START = 'svc server start';
const CONFIG_TEST = 'packages/server/src/config.test.ts';
const LOCAL_TEST = 'packages/server/src/local-commands/local.test.ts';
const MADE_FROM_NOTHING = 'an organization, its owner, a key and a token are made from nothing, and work';
const HANDED_ON = 'options of the engine are handed on as they are';
const CLI_TEST = 'test/e2e/cli-server.test.ts';
const FLOW = 'start, status, logs and stop tell what is and what to do next, each with its code';

export const startFlagClaims: readonly Claim[] = [
  provedBy(START, 'Starts the server, and an engine when none runs', CLI_TEST, FLOW),
  provedBy(`${START} --detach`, 'In the background; returns when it answers', CLI_TEST, FLOW),
  claimOnce(
    `${START} --host`,
    'The address or name to listen on',
    'it answers there',
    async (ground) => {
      const { url } = await optionedServer(ground);
      assert.equal(new URL(url).hostname, '127.0.0.1');
      assert.equal((await fetch(`${url}/openapi.json`)).status, 200);
    },
    { default: '127.0.0.1' },
  ),
  claimOnce(
    `${START} --port`,
    'The port to listen on',
    'it answers there',
    async (ground) => {
      const { url, port } = await optionedServer(ground);
      assert.equal(new URL(url).port, String(port));
    },
    { default: '5555' },
  ),
  provedBy(
    `${START} --dev`,
    'Asks nobody for a key: every operation is allowed',
    'packages/server/src/transports/rpc/authentication.test.ts',
    'development mode asks nobody for a key',
  ),
  provedBy(
    `${START} --allow-remote-dev`,
    'With `--dev`, lets others than this machine connect',
    CONFIG_TEST,
    'development mode beyond loopback needs to be confirmed',
  ),
  provedBy(
    `${START} --reset-key`,
    'A new signing key: every key that was handed out before is worthless',
    'test/e2e/rest-organizations.test.ts',
    'a new signing key ends keys that were signed, and neither API keys nor tokens',
  ),
  claimOnce(
    `${START} --allowed-host`,
    'More names under which clients may reach it',
    'a request for that name is answered, for another it is 403',
    async (ground) => {
      const { statusFor } = await optionedServer(ground);
      assert.deepEqual(
        [await statusFor({ host: 'box.example' }), await statusFor({ host: 'other.example' })],
        [200, 403],
      );
    },
    { default: 'none' },
  ),
  claimOnce(
    `${START} --cors-origin`,
    'Pages that may call it from a browser',
    'a request from that page is answered, from another it is 403',
    async (ground) => {
      const { statusFor } = await optionedServer(ground);
      const from = (origin: string) => statusFor({ origin });
      assert.deepEqual([await from('https://page.example'), await from('https://other.example')], [200, 403]);
    },
    { default: 'none' },
  ),
  provedBy(`${START} --isolation`, 'The default class of sandboxes', CONFIG_TEST, HANDED_ON, {
    default: 'the strongest that the host has',
  }),
  provedBy(`${START} --warm`, 'Keeps started sandboxes ready', CONFIG_TEST, HANDED_ON, { default: 'none' }),
  provedBy(`${START} --warm-adaptive`, 'The most that are kept ready unasked', CONFIG_TEST, HANDED_ON, {
    default: '3',
  }),
  provedBy(`${START} --bind-root`, 'Folders of the host that may be mounted', CONFIG_TEST, HANDED_ON, {
    default: 'none',
  }),
  provedBy(
    `${START} --disk-image-root`,
    'Folders of the host whose disk images may be mounted',
    CONFIG_TEST,
    HANDED_ON,
    { default: 'none' },
  ),
  provedBy(
    `${START} --trusted-registry`,
    'Registries in private networks that may be pulled from',
    CONFIG_TEST,
    HANDED_ON,
    { default: 'none' },
  ),
  provedBy(`${START} --insecure-registry`, 'Registries spoken to without TLS', CONFIG_TEST, HANDED_ON, {
    default: 'none',
  }),
  provedBy(`${START} --max-image-gib`, 'How large an image may be once unpacked', CONFIG_TEST, HANDED_ON, {
    default: '32',
  }),
  provedBy(
    `${START} --max-unpack-ratio`,
    'How many times its compressed size a layer may unpack to, beyond 64 MiB',
    'packages/engine/src/images/image-holds.test.ts',
    'a layer that unpacks to much more than was sent is refused, unless the operator allows it',
    { default: '100' },
  ),
  provedBy(
    `${START} --keep-images`,
    'For how many days images stay that organizations pulled and nobody uses; 0: for ever',
    'packages/engine/src/daemon/collect-images.test.ts',
    'images are collected after the time that is set, again and again, and not at all without one',
    { default: '7' },
  ),
  provedBy(`${START} --nameserver`, 'Resolvers to forward to', CONFIG_TEST, HANDED_ON, {
    default: 'those of the host',
  }),
  provedBy(`${START} --address-pool`, 'The addresses of sandboxes', CONFIG_TEST, HANDED_ON),
  provedBy(
    `${START} --database`,
    'PostgreSQL instead of the built-in store',
    'packages/server/src/host/explain-start.test.ts',
    'a database that does not answer is told of without its password',
    { default: 'the built-in store' },
  ),
  claimOnce(
    `${START} --secrets-key`,
    'The file with the keys that secrets are sealed with; made when missing',
    'it is there, for the user of the server alone',
    async (ground) => {
      const { secretsKey } = await optionedServer(ground);
      assert.equal(statSync(secretsKey).mode & 0o777, 0o600);
    },
    { default: '`server/secrets.key` in the data folder' },
  ),
  claimOnce(
    `${START} --plans`,
    'A file with plans, limits and prices',
    'the plans that it shows',
    async (ground) => {
      const { rest } = await optionedServer(ground);
      const names = (await rest('/billing/plans')).map(({ name }: Json) => name);
      assert.ok(names.includes('tiny'), JSON.stringify(names));
    },
    { default: 'one without limits' },
  ),
  claimOnce(
    `${START} --ssh-port`,
    'Lets SSH into sandboxes on this port',
    'what listens there introduces itself as SSH',
    async (ground) => {
      const { sshPort } = await optionedServer(ground);
      const socket = connect(sshPort, '127.0.0.1');
      const [greeting] = (await once(socket, 'data')) as [Buffer];
      assert.match(greeting.toString(), /^SSH-2\.0-/);
      socket.destroy();
    },
    { default: 'off' },
  ),
  provedBy(
    `${START} --ssh-idle-timeout`,
    'Ends SSH without traffic after this long',
    'packages/server/src/gateway-options.test.ts',
    'SSH has a port, the address of the server and a limit on silence',
    { default: '600' },
  ),
  provedBy(
    `${START} --preview-domain`,
    'Shows ports of sandboxes below this domain',
    'test/e2e/previews.test.ts',
    'a port without a service is a 502, and with one its pages are served whole',
    { default: 'off' },
  ),
  provedBy(
    `${START} --publish-address`,
    'Addresses beside loopback that ports may be published on',
    'test/e2e/udp-ports.test.ts',
    'another host is answered on the address that the operator allows',
    { default: 'none' },
  ),
  claimOnce(
    `${START} --engine-socket`,
    'Uses the engine behind this socket and starts none',
    'a socket that nobody has: health says that the engine cannot be reached',
    async (ground) => {
      const { url } = await optionedServer(ground);
      assert.equal((await fetch(`${url}/api/v1/health`)).status, 503);
    },
    { default: 'that of the data folder' },
  ),
  claimOnce(
    `${START} --run-as`,
    'Whom the web-facing process becomes',
    'the user that the kernel shows for it',
    async (ground) => {
      const pid = await ground.server.webPid();
      assert.match(readFileSync(`/proc/${pid}/status`, 'utf8'), /^Uid:\s+64555\s+64555\s+64555\s/m);
    },
    { default: '`svc`' },
  ),
  claimOnce(
    `${START} --max-body-bytes`,
    'The largest body of a request',
    'one byte more is 413, over JSON-RPC',
    async (ground) => {
      const { url, maxBodyBytes } = await optionedServer(ground);
      const post = async (length: number) => {
        const headers = { 'content-type': 'application/json' };
        return (
          await fetch(`${url}/api/v1/rpc`, { method: 'POST', headers, body: `"${'x'.repeat(length - 2)}"` })
        ).status;
      };
      assert.deepEqual([(await post(maxBodyBytes)) === 413, await post(maxBodyBytes + 1)], [false, 413]);
    },
    { default: '2 MiB' },
  ),
  provedBy(
    `${START} --max-calls`,
    'How many calls may be at work at once',
    'packages/server/src/transports/http/http.test.ts',
    'calls beyond the limit are refused at once instead of queued',
    { default: '1024' },
  ),
  claimOnce(
    `${START} --rate-limit`,
    'How many requests an organization may send in a minute',
    'the header of an answer',
    async (ground) => {
      const { headersOf } = await optionedServer(ground);
      assert.equal((await headersOf('/sandboxes')).get('ratelimit-limit'), '1000');
    },
    { default: 'no limit' },
  ),
  provedBy(
    `${START} --max-orgs-per-user`,
    'How many organizations one user may own; 0: as many as they like',
    'test/security/09-quotas.test.ts',
    'a user owns no more organizations than the operator allows, also when they ask for many at once',
    { default: '20' },
  ),
  provedBy(
    `${START} --keep-events`,
    'For how many days audit events are kept',
    'packages/server/src/housekeeping.test.ts',
    'a server removes events that are older than it is told to keep, and the chain stays whole',
    { default: '90' },
  ),
  claimOnce(
    `${START} --recovery-time`,
    'How long sandboxes may be out of reach before somebody has to choose',
    'an outage of more than the second that it was given',
    async (ground) => {
      await ground.until((await plainBox(ground)).id, 'recovery_decision_required');
    },
    { default: '600', phase: 'outage' },
  ),
  claimOnce(
    `${START} --log-level`,
    'How much is logged',
    'with `warn` the log lacks the line that every server logs, and has a warning',
    async (ground) => {
      const { folder } = await optionedServer(ground);
      const log = readFileSync(`${folder}/server.log`, 'utf8');
      assert.doesNotMatch(log, /the server listens/);
      assert.match(log, /"level":40/);
      assert.match(await ground.server.log(), /the server listens/);
    },
    { default: '`info`' },
  ),
];

export const serverCommandClaims: readonly Claim[] = [
  provedBy('svc server stop', 'Stops the server; its sandboxes run on', CLI_TEST, FLOW),
  claimOnce('svc server status', 'Tells whether the server asks for a key', 'its words', async (ground) => {
    assert.match(await ground.cli(['server', 'status']), /^authentication: required/m);
  }),
  claimOnce('svc server status --json', 'The same for programs', 'its fields', async (ground) => {
    const status: Json = JSON.parse(await ground.cli(['server', 'status', '--json']));
    assert.deepEqual(
      [status.running, status.url, status.authentication_required],
      [true, ground.server.url, true],
    );
  }),
  claimOnce(
    'svc server keygen',
    'Makes a key that never expires and reaches every namespace',
    'what it prints, and that the key is taken',
    async (ground) => {
      const key = (await ground.cli(['server', 'keygen'])).trimEnd();
      const { expires, namespace }: Json = JSON.parse(await ground.cli(['server', 'keygen', '--json']));
      assert.deepEqual([expires, namespace], [null, '*']);
      assert.equal((await ground.rpc('sandbox.metrics.get', { namespace: '*' }, key)).error, undefined);
    },
  ),
  claimOnce(
    'svc server keygen --expire',
    'When it expires: a number and s, m, h, d, w, mo or y',
    'each unit; another is refused with the units; an expired key is 401',
    async (ground) => {
      const seconds = { s: 1, m: 60, h: 3600, d: 86_400, w: 604_800, mo: 2_592_000, y: 31_536_000 };
      for (const [unit, length] of Object.entries(seconds)) {
        const { expiresAt } = await createKey(ground.server.engine.folder, { expire: `2${unit}` });
        const left = (Date.parse(expiresAt ?? '') - Date.now()) / 1000;
        assert.ok(left <= 2 * length && left > 2 * length - 60, unit);
      }
      const { expires }: Json = JSON.parse(
        await ground.cli(['server', 'keygen', '--json', '--expire', '1h']),
      );
      assert.ok(Date.parse(expires) > Date.now());
      await assert.rejects(ground.cli(['server', 'keygen', '--expire', '1f']), /s seconds, m minutes/);
    },
  ),
  claimOnce(
    'svc server keygen --namespace',
    'Limits it to the sandboxes of one namespace; combines with the expiry',
    'what it prints for both',
    async (ground) => {
      const words = ['server', 'keygen', '--json', '--namespace', 'ci', '--expire', '1d'];
      const { token, namespace, expires }: Json = JSON.parse(await ground.cli(words));
      assert.deepEqual([namespace, typeof expires], ['ci', 'string']);
      const { error } = await ground.rpc('sandbox.metrics.get', { namespace: 'other' }, token);
      assert.equal(error?.code, -32_002);
    },
  ),
  claimOnce('svc server keygen --json', 'The same for programs', 'its fields', async (ground) => {
    const made: Json = JSON.parse(await ground.cli(['server', 'keygen', '--json']));
    assert.deepEqual(Object.keys(made), ['token', 'expires', 'namespace']);
    assert.deepEqual([made.expires, made.namespace], [null, '*']);
  }),
  claimOnce(
    'svc server keygen --quiet',
    'Prints the key and nothing else, so that it fits into a variable',
    'what it prints is a key that is taken',
    async (ground) => {
      const key = (await ground.cli(['server', 'keygen', '--quiet'])).trimEnd();
      assert.match(key, /^svc_\S+$/);
      assert.equal((await ground.rpc('sandbox.metrics.get', { namespace: '*' }, key)).error, undefined);
    },
  ),
  provedBy('svc server keygen --database', 'In the store of this PostgreSQL', LOCAL_TEST, MADE_FROM_NOTHING),
  provedBy(
    'svc server rotate-secrets',
    'Seals secrets with a new key',
    'test/e2e/rest-organizations.test.ts',
    'secrets are sealed anew while the server runs, and the server seals with the new key',
    { covers: ['svc server rotate-secrets --reseal-only', 'svc server rotate-secrets --secrets-key'] },
  ),
  provedBy(
    'svc server rotate-secrets --database',
    'In the store of this PostgreSQL',
    LOCAL_TEST,
    MADE_FROM_NOTHING,
  ),
  claimOnce(
    'svc server logs',
    'Shows what the server logs',
    'a line that every server logs',
    async (ground) => {
      assert.match(await ground.cli(['server', 'logs']), /the server listens/);
    },
  ),
  claimOnce('svc server logs --tail', 'Only the last lines', 'how many there are', async (ground) => {
    assert.equal((await ground.cli(['server', 'logs', '--tail', '1'])).trimEnd().split('\n').length, 1);
  }),
  claimOnce(
    'svc server logs --follow',
    'Goes on with what is logged from now on',
    'a line that is written while it is followed',
    async (ground) => {
      const { folder } = await optionedServer(ground);
      const child = ground.spawn(['server', 'logs', '-f', '--tail', '1', '--path', folder]);
      try {
        let printed = '';
        child.stdout?.on('data', (chunk: Buffer) => (printed += chunk.toString()));
        await ground.wait(() => Promise.resolve(printed !== ''), 'what was logged before');
        await appendFile(`${folder}/server.log`, '{"level":40,"time":0,"msg":"something new"}\n');
        await ground.wait(() => Promise.resolve(printed.includes('something new')), 'what is logged now');
      } finally {
        child.kill();
      }
    },
  ),
];
