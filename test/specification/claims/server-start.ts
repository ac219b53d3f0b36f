import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFileSync, statSync } from 'node:fs';
import { connect } from 'node:net';
import { claimOnce, provedBy, type Claim } from '../claim.ts';
import type { Json } from '../ground.ts';
import { optionedServer } from '../optioned-server.ts';
import { plainBox } from './record.ts';

const START = 'svc server start';
const CONFIG_TEST = 'packages/server/src/config.test.ts';
const HANDED_ON = 'options of the engine are handed on as they are';
const CLI_TEST = 'test/e2e/cli-server.test.ts';
const FLOW = 'start, status, logs and stop print the state and the next command, each with its exit code';

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
    'Asks for no key: every operation is allowed',
    'packages/server/src/transports/rpc/authentication.test.ts',
    'development mode asks for no key',
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
    'a new signing key ends signed keys, API keys and tokens, over REST and over JSON-RPC',
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
  provedBy(
    `${START} --tuning`,
    'Mechanisms that only make starts quicker and idle sandboxes cheaper',
    CONFIG_TEST,
    HANDED_ON,
    { default: 'on' },
  ),
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
  provedBy(
    `${START} --insecure-registry`,
    'Registries that are spoken to without TLS',
    CONFIG_TEST,
    HANDED_ON,
    { default: 'none' },
  ),
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
    'For how many days unused images of organizations stay; 0: for ever',
    'packages/engine/src/daemon/collect-images.test.ts',
    'images are collected after the time that is set, again and again, and not at all without one',
    { default: '7' },
  ),
  provedBy(`${START} --nameserver`, 'Resolvers to forward to', CONFIG_TEST, HANDED_ON, {
    default: 'those of the host',
  }),
  provedBy(`${START} --address-pool`, 'The addresses of sandboxes', CONFIG_TEST, HANDED_ON),
  provedBy(
    `${START} --ipv6-pool`,
    'The IPv6 addresses of sandboxes: auto, or a /96',
    CONFIG_TEST,
    HANDED_ON,
    {
      default: 'they have no IPv6',
    },
  ),
  provedBy(
    `${START} --max-bandwidth`,
    'MiB that a sandbox may send in a second, and receive',
    CONFIG_TEST,
    HANDED_ON,
    { default: 'no limit' },
  ),
  provedBy(
    `${START} --network-ceiling`,
    'What sandboxes may reach at most, even where a policy allows more; for one organization with its name in front',
    CONFIG_TEST,
    'with keys sandboxes reach public addresses and what the operator names, and with --dev everything',
    { default: 'public addresses; with `--dev` everything' },
  ),
  provedBy(
    `${START} --max-packets`,
    'Packets that a sandbox may send in a second, and receive',
    CONFIG_TEST,
    HANDED_ON,
  ),
  provedBy(
    `${START} --database`,
    'PostgreSQL instead of the built-in store',
    'packages/server/src/host/explain-start.test.ts',
    'a database that does not answer is reported without its password',
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
    { default: 'localhost when only this machine can connect' },
  ),
  provedBy(
    `${START} --e2b-ports`,
    "Who reaches ports of sandboxes that E2B's clients make",
    'packages/server/src/transports/e2b/tokens.test.ts',
    'where the operator asks for tokens, a port is open when the client said so',
    { default: 'public' },
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
    'a missing socket: health says that the engine cannot be reached',
    async (ground) => {
      const { url } = await optionedServer(ground);
      assert.equal((await fetch(`${url}/api/v1/health`)).status, 503);
    },
    { default: 'that of the data folder' },
  ),
  provedBy(
    `${START} --nodes`,
    'Uses the engines of the nodes in this file and starts none',
    'test/e2e/fleet-servers.test.ts',
    'two servers use what either has made, and reach its published ports and previews',
    { default: 'none' },
  ),
  claimOnce(
    `${START} --run-as`,
    'Whom the web-facing process becomes',
    'the user that the kernel shows for it',
    async (ground) => {
      const pid = await ground.server.webPid();
      assert.match(readFileSync(`/proc/${pid}/status`, 'utf8'), /^Uid:\s+64555\s+64555\s+64555\s/m);
    },
    { default: "the data folder's own user" },
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
    `${START} --sign-up`,
    'Who may make an account: invited, open or closed',
    'packages/server/src/handlers/accounts/accounts.test.ts',
    'the operator decides who may sign up',
    { default: 'invited' },
  ),
  provedBy(
    `${START} --allow-private-targets`,
    'Whether addresses that organizations give may lead into the network of the server',
    'packages/server/src/handlers/accounts/provider-sessions.test.ts',
    'a provider inside of the network of the server is refused, unless the operator lets it',
    { default: 'off' },
  ),
  provedBy(
    `${START} --keep-events`,
    'For how many days audit events are kept',
    'packages/server/src/housekeeping.test.ts',
    'a server removes events that are older than it is told to keep, and the chain stays whole',
    { default: '90' },
  ),
  provedBy(
    `${START} --keep-failed`,
    'For how many hours sandboxes are kept that failed and never ran',
    'packages/server/src/sandboxes/remove-failed-creates.test.ts',
    'a sandbox that never ran is removed some time after it failed, and one that ran is kept',
    { default: '24' },
  ),
  claimOnce(
    `${START} --recovery-time`,
    'How long sandboxes may be out of reach before a caller has to choose',
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
