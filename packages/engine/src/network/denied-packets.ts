import { spawn } from '@svc/contract/node-spawn';
import { once } from 'node:events';
import type { NetworkDecision, Protocol } from '@svc/contract/orchestrator';
import { readDenialMark } from './denial-marks.ts';
import { BATCH_DEADLINE_MS, NFT_ENVIRONMENT } from './nft.ts';
import { tableName } from './ruleset.ts';

/** The packets denied to one sandbox since the last read. */
export interface DeniedPackets {
  readonly hostInterface: string;
  /** Their known destinations; packets beyond the capacity of the sets are only counted. */
  readonly places: readonly { readonly decision: NetworkDecision; readonly count: number }[];
  readonly packets: number;
}

/** More than the output for full sets. */
const MAX_OUTPUT_BYTES = 8 * 1024 * 1024;

/** Reads the denials and resets the sets. The count is read first, so a packet in between is missing from it only until the next read. */
export async function takeDeniedPackets(instance: string): Promise<readonly DeniedPackets[]> {
  const table = `inet ${tableName(instance)}`;
  // As separate lines: in one command nft would list the sets as empty, because it flushes them.
  const output = await askNft(
    ['denied_packets', 'denied_places', 'denied_places6'].flatMap((set) => [
      `list set ${table} ${set}`,
      `flush set ${table} ${set}`,
    ]),
  );
  const [packets = [], ...places] = output.map(elementsOf);
  const found = new Map<string, { places: DeniedPackets['places'][number][]; packets: number }>();
  const of = (name: string) => {
    const known = found.get(name) ?? { places: [], packets: 0 };
    found.set(name, known);
    return known;
  };
  for (const { value, count } of packets) if (typeof value === 'string') of(value).packets += count;
  for (const { value, count } of places.flat()) {
    const [name, ...place] = Array.isArray(value) ? value : [];
    const decision = toDecision(place);
    if (typeof name === 'string' && decision !== null) of(name).places.push({ decision, count });
  }
  return [...found].map(([hostInterface, known]) => ({ hostInterface, ...known }));
}

const PROTOCOLS: Readonly<Record<string, Protocol>> = {
  tcp: 'tcp',
  udp: 'udp',
  icmp: 'icmpv4',
  'ipv6-icmp': 'icmpv6',
};

function toDecision([address, protocolName, port, mark]: readonly unknown[]): NetworkDecision | null {
  const protocol = PROTOCOLS[String(protocolName)];
  const reason = readDenialMark(Number(mark));
  // Policies cannot allow other protocols by name; their packets are only counted.
  if (typeof address !== 'string' || protocol === undefined || reason === null) return null;
  const hasPorts = protocol === 'tcp' || protocol === 'udp';
  const isQuestion = reason.decidedBy === 'too_many_questions';
  return {
    kind: isQuestion ? 'dns' : hasPorts ? protocol : 'icmp',
    verdict: 'deny',
    host: null,
    address,
    port: hasPorts && !isQuestion ? Number(port) : null,
    protocol,
    ...reason,
  };
}

interface Element {
  readonly value: unknown;
  readonly count: number;
}

/** The elements of a set in nft's format: `{"elem": {"val": …, "counter": {"packets": 1}}}`. */
function elementsOf(line: string): readonly Element[] {
  const { nftables } = JSON.parse(line) as { nftables: readonly { set?: { elem?: readonly unknown[] } }[] };
  return nftables.flatMap(({ set }) =>
    (set?.elem ?? []).map((each) => {
      const { elem } = each as { elem: { val: unknown; counter?: { packets?: number } } };
      const { val } = elem;
      const value = typeof val === 'object' && val !== null && 'concat' in val ? val.concat : val;
      return { value, count: elem.counter?.packets ?? 0 };
    }),
  );
}

/** Runs nft commands; returns one line of JSON for each `list`. */
async function askNft(commands: readonly string[]): Promise<readonly string[]> {
  const signal = AbortSignal.timeout(BATCH_DEADLINE_MS);
  // SAFETY: no shell, a fixed program; the commands contain only the name of our own table.
  const child = spawn('nft', ['-j', '-i'], { env: NFT_ENVIRONMENT, stdio: ['pipe', 'pipe', 'pipe'], signal });
  let output = '';
  let complaint = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    output += text;
    if (output.length > MAX_OUTPUT_BYTES) child.kill('SIGKILL');
  });
  child.stderr.setEncoding('utf8').on('data', (text: string) => (complaint += text.slice(0, 2000)));
  child.stdin.on('error', () => undefined); // Seen by what is missing.
  child.stdin.end(`${commands.join('\n')}\n`);
  await once(child, 'close');
  const lines = output.split('\n').filter((line) => line.startsWith('{'));
  if (lines.length * 2 !== commands.length) throw new Error(`nft does not list: ${complaint.slice(0, 2000)}`);
  return lines;
}
