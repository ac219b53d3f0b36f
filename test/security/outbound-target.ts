import { once } from 'node:events';
import { createServer } from 'node:net';
import {
  addressRecord,
  encodeAnswer,
  encodeName,
  TYPE,
} from '../../packages/engine/src/testing/dns-samples.ts';
import { startSampleResolver } from '../../packages/engine/src/testing/sample-resolver.ts';
import { flawOfTarget, sendOutbound } from '../../packages/server/src/outbound/send-outbound.ts';

/**
 * Part of 12-outbound-targets.test.ts, in a network of its own where this process is the resolver and the victim: asks for the addresses
 * of its arguments and prints what came of it, and the number of connections made.
 */
const PUBLIC_ONLY = { mayReachInside: false };
/** What each name leads to: the first time, and ever after. */
const NAMES: Readonly<Record<string, readonly [string, string]>> = {
  'rebound.example': ['198.41.0.4', '127.0.0.1'],
  'inside.example': ['127.0.0.1', '127.0.0.1'],
  'mapped.example': ['::ffff:7f00:1', '::ffff:7f00:1'],
  'translated.example': ['64:ff9b::7f00:1', '64:ff9b::7f00:1'],
  'tunnelled.example': ['2002:7f00:1::', '2002:7f00:1::'],
  'own.example': ['192.5.6.1', '192.5.6.1'],
};
const asked = new Map<string, number>();
await using _resolver = await startSampleResolver('127.0.0.1', (query) => [answer(query)], 53);
let connections = 0;
const victim = createServer((socket) => {
  connections += 1;
  socket.destroy();
}).listen(443, '::');
await once(victim, 'listening');

const outcomes: string[] = [];
for (const address of process.argv.slice(2)) {
  const url = new URL(address);
  const flaw = flawOfTarget(url, PUBLIC_ONLY);
  const limits = { timeoutMs: 3000, maxAnswerBytes: 64 };
  outcomes.push(
    flaw ??
      (await sendOutbound(PUBLIC_ONLY, { url, method: 'GET', ...limits }).then(() => 'answered', String)),
  );
}
victim.close();
process.stdout.write(JSON.stringify({ outcomes, connections }));
process.exit(0);

function answer(query: Buffer): Buffer {
  const found = Object.keys(NAMES).find((name) => query.includes(encodeName(name)));
  const [first, later] = NAMES[found ?? ''] ?? [];
  if (found === undefined || first === undefined || later === undefined)
    return encodeAnswer(query, [], { flags: 0x8183 });
  const type = query.readUInt16BE(12 + encodeName(found).length);
  const isRight = type === (first.includes(':') ? TYPE.aaaa : TYPE.a);
  if (!isRight) return encodeAnswer(query, []);
  const times = asked.get(found) ?? 0;
  asked.set(found, times + 1);
  return encodeAnswer(query, [{ ...addressRecord(times === 0 ? first : later), ttl: 0 }]);
}
