import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { LinuxNetwork } from '../packages/engine/src/network/linux-network.ts';
import type { Slot } from '../packages/engine/src/network/network.ts';
import { resolvePolicy } from '../packages/engine/src/policy/index.ts';
import { probe } from '../packages/engine/src/testing/probe.ts';
import { TestEngine } from '../packages/engine/src/testing/test-engine.ts';
import { interleave, percentile, ratio, type BenchmarkContext, type Measurement } from './benchmark.ts';
import { timed } from './measure.ts';
import { TCP_PORT, UNDISTURBED, type NetworkPeers, type Place } from './network-peers.ts';
import { readTree } from './process-memory.ts';

const SCOPES = 8;
const ROUNDS = 30;
const EXCHANGES = 50;
const MIB = 1024 * 1024;
const NAME = 'public.example';
const POLICY = resolvePolicy({
  policy: { rules: [{ direction: 'egress', action: 'allow', destination: { domain: NAME } }] },
});

/** The cost of a proxy per scope: its start, its memory, and the connections that it checks. */
export async function measureProxies(
  peers: NetworkPeers,
  { isQuick, signal }: BenchmarkContext,
): Promise<Measurement[]> {
  const resolvers = [{ address: peers.internet.resolver, port: 53 }];
  await using engine = await TestEngine.make(103, { resolvers, prepared: { loopback: 0, public: 0 } });
  const network = engine.open();
  await network.recover([]);
  const [firsts, nexts]: [number[], number[]] = [[], []];
  const slots: Slot[] = [];
  for (let scope = 0; scope < (isQuick ? 1 : SCOPES); scope++) {
    signal.throwIfAborted();
    for (const times of [firsts, nexts]) {
      const slot = await network.acquire('public', signal);
      slots.push(slot);
      times.push(await timed(() => network.setPolicy(slot, POLICY, null, String(scope))));
    }
  }
  const place = await placeOf(slots[0], network);
  const dials = (from: Place) => async () =>
    percentile(await peers.probe(from, 'dials', isQuick ? 5 : EXCHANGES), UNDISTURBED);
  const times = await interleave(
    isQuick ? 1 : ROUNDS,
    { bare: dials(peers.bare), judged: dials(place) },
    signal,
  );
  const memory = proxyPids(engine).map((pid) => (readTree(pid)[0]?.pssBytes ?? 0) / MIB);
  for (const { key } of slots) await network.release(key);
  return [
    { what: 'rules for the first sandbox of a scope, with its proxy', unit: 'ms', values: firsts },
    { what: 'rules for the next sandbox of that scope', unit: 'ms', values: nexts },
    ratio('rules, first / next sandbox of a scope', firsts, nexts),
    { what: `memory (PSS) of each of ${memory.length} proxies`, unit: 'MiB', values: memory },
    { what: 'TCP connection with one exchange, bare veth', unit: 'µs', values: times.bare },
    { what: 'TCP connection with one exchange, judged by a proxy', unit: 'µs', values: times.judged },
    ratio('TCP connection, judged / bare veth', times.judged, times.bare),
  ];
}

/** Connections of a sandbox that has resolved the name first, which the policy requires. */
async function placeOf(slot: Slot | undefined, network: LinuxNetwork): Promise<Place> {
  if (slot?.link === undefined || slot.link === null) throw new Error('A slot without a link');
  const { nameserver } = slot.link;
  await probe(slot.networkNamespace, { kind: 'dns', server: nameserver, name: NAME, transport: 'udp' });
  const { known } = await network.outlook(slot);
  if (known.length === 0) throw new Error(`${NAME} leads nowhere, so nothing at ${TCP_PORT} can be reached`);
  return { namespace: slot.networkNamespace, authorityFile: '' };
}

function proxyPids({ options }: TestEngine): readonly number[] {
  const folder = join(options.runFolder, 'proxies');
  return readdirSync(folder).map(
    (name) => (JSON.parse(readFileSync(join(folder, name), 'utf8')) as { pid: number }).pid,
  );
}
