import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Network } from '@svc/contract';
import type { NetworkDecision } from '@svc/contract/orchestrator';
import { resolvePolicy } from '../policy/resolve-policy.ts';
import { command, inNamespace } from '../testing/command.ts';
import type { Internet } from '../testing/internet.ts';
import { probe, probeBriefly, type Attempt } from '../testing/probe.ts';
import { withInternet } from '../testing/with-internet.ts';
import { waitUntil } from '@svc/contract/testing';
import type { LinuxNetwork } from './linux-network.ts';
import type { Slot } from './network.ts';

let internet: Internet;
let network: LinuxNetwork;
/** Reports by slot, and the number of decisions left out. */
const reports = new Map<string, { decisions: NetworkDecision[]; count: number; leftOut: number }>();

withInternet(94, (connected) => {
  ({ internet, network } = connected);
  network.onReport = (key, { decisions, leftOut }) => {
    const of = reportsOf(key);
    of.leftOut += leftOut;
    for (const { decision, count } of decisions) {
      of.decisions.push(decision);
      of.count += count;
    }
  };
});

function reportsOf(key: string) {
  const known = reports.get(key) ?? { decisions: [], count: 0, leftOut: 0 };
  reports.set(key, known);
  return known;
}

async function slotWith(given?: Network): Promise<Slot> {
  const slot = await network.acquire('public', AbortSignal.timeout(100_000));
  if (given !== undefined) await network.setPolicy(slot, resolvePolicy(given));
  return slot;
}

/** What the packet filter and the resolver said about this: `tcp 10.0.0.1:80 default null`. */
async function wordsOf(slot: Slot): Promise<readonly string[]> {
  await network.denials.look();
  return reportsOf(slot.key).decisions.map(
    ({ kind, host, address, port, decidedBy, rule }) =>
      `${kind} ${host ?? address ?? ''}:${port ?? ''} ${decidedBy} ${rule ?? ''}`,
  );
}

const tcp = (host: string, port = 8080): Attempt => ({ kind: 'tcp', host, port });
const knock = (address: string, port: number, protocol: 'tcp' | 'udp' = 'udp'): Attempt => ({
  kind: 'knock',
  flows: [{ address, protocol, port }],
});

test('denials of a sandbox without a policy are reported with the default that decided', async () => {
  const { privateAddress, metadataAddress, publicAddress } = internet;
  const slot = await slotWith();
  await probeBriefly(slot.networkNamespace, tcp(privateAddress), tcp(metadataAddress, 80));
  await probe(slot.networkNamespace, knock(publicAddress, 853), knock(slot.link?.address ?? '', 9));
  assert.deepEqual(
    new Set(await wordsOf(slot)),
    new Set([
      `tcp ${privateAddress}:8080 default `,
      `tcp ${metadataAddress}:80 default `,
      `udp ${publicAddress}:853 closed_port `,
    ]),
  );
});

test('denials by a rule are reported with the rule: a range, a port, ICMP, another sandbox, a name', async () => {
  const { publicAddress, privateAddress } = internet;
  const other = await slotWith();
  const slot = await slotWith({
    policy: {
      rules: [
        { direction: 'egress', action: 'deny', destination: { domain_suffix: 'rebind.example' } },
        { direction: 'egress', action: 'deny', destination: { cidr: `${privateAddress}/32` } },
        {
          direction: 'egress',
          action: 'allow',
          destination: 'any',
          protocols: ['tcp', 'udp'],
          ports: [{ start: 1, end: 8080 }],
        },
      ],
    },
  });
  const place = slot.networkNamespace;
  const [pass] = await probe(place, tcp(publicAddress));
  assert.match(pass ?? '', /^you are/);
  await probe(
    place,
    knock(privateAddress, 7),
    knock(publicAddress, 9000),
    knock(other.link?.address ?? '', 7),
  );
  const ask = {
    kind: 'dns',
    server: slot.link?.nameserver ?? '',
    name: 'a.rebind.example',
    transport: 'udp',
  } as const;
  assert.deepEqual(await probe(place, ask), ['rcode 3']);
  await command(...inNamespace(place, 'busybox', 'ping', '-c', '1', '-W', '1', publicAddress)).catch(
    () => '',
  );
  await waitUntil(async () => (await wordsOf(slot)).length >= 5);
  assert.deepEqual(
    new Set((await wordsOf(slot)).filter((words) => !words.startsWith('tcp'))),
    new Set([
      `udp ${privateAddress}:7 rule 1`,
      `udp ${publicAddress}:9000 default `,
      `udp ${other.link?.address}:7 out_of_reach `,
      'dns a.rebind.example: name 0',
      `icmp ${publicAddress}: default `,
    ]),
  );
});

test('a flood is counted and not listed, and hides nothing of another sandbox', async () => {
  const { privateAddress } = internet;
  const [loud, quiet] = await Promise.all([slotWith(), slotWith()]);
  const flows = Array.from({ length: 600 }, (_, index) => ({
    address: privateAddress,
    protocol: 'udp' as const,
    port: 1000 + index,
  }));
  await probe(loud.networkNamespace, { kind: 'knock', flows });
  await probe(quiet.networkNamespace, knock(privateAddress, 7));
  assert.deepEqual(await wordsOf(quiet), [`udp ${privateAddress}:7 default `]);
  await wordsOf(loud);
  const { decisions, count, leftOut } = reportsOf(loud.key);
  // 30 at once and 5 a second, however slow this machine is.
  assert.ok(decisions.length >= 30 && decisions.length < 600, `${decisions.length} were listed`);
  assert.equal(count + leftOut, 600, 'each packet was told or counted');
  assert.equal(reportsOf(quiet.key).leftOut, 0);
});

test('the last denials are reported before the slot is removed', async () => {
  const slot = await slotWith();
  await probe(slot.networkNamespace, knock(internet.privateAddress, 7));
  await network.release(slot.key);
  assert.deepEqual(
    reportsOf(slot.key).decisions.map(({ port }) => port),
    [7],
  );
});
