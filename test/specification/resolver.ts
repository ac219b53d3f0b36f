import { addressRecord, encodeAnswer, encodeName } from '../../packages/engine/src/testing/dns-samples.ts';
import {
  startSampleResolver,
  type SampleResolver,
} from '../../packages/engine/src/testing/sample-resolver.ts';

export type { SampleResolver };
export const PUBLIC_NAME = 'public.example';
export const PRIVATE_NAME = 'private.example';
const ADDRESSES = { [PUBLIC_NAME]: '1.2.3.4', [PRIVATE_NAME]: '10.9.9.9' };
const NO_SUCH_NAME = 0x8183;
const TYPE_A = 1;

/** Starts a resolver that alone knows two names. */
export async function startResolver(): Promise<SampleResolver> {
  return await startSampleResolver('127.0.0.1', (query) => {
    const found = Object.entries(ADDRESSES).find(([name]) => query.includes(encodeName(name)));
    if (found === undefined) return [encodeAnswer(query, [], { flags: NO_SUCH_NAME })];
    return [encodeAnswer(query, typeOf(query) === TYPE_A ? [addressRecord(found[1])] : [])];
  });
}

/** Behind the name of the question, which begins after the head. */
function typeOf(query: Buffer): number {
  let end = 12;
  while (query[end] !== 0) end += (query[end] ?? 0) + 1;
  return query.readUInt16BE(end + 1);
}
