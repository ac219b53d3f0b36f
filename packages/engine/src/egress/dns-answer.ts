import { addressFromBytes, type Address } from '../policy/address.ts';
import type { DnsQuery } from './dns-query.ts';
import { HEADER_BYTES, readName, readRecords, skipName, type DnsRecord } from './dns-records.ts';

/**
 * Classification of a datagram from a resolver.
 * - `foreign`: not the answer to this question; the exchange keeps waiting.
 * - `malformed`: matches the question, but cannot be parsed.
 * - `truncated`: the client has to ask again over TCP.
 * - `hidden`: contains an address that this sandbox must not get (DNS rebinding).
 */
export type ReadAnswer =
  | { readonly kind: 'answer'; readonly bytes: Buffer; readonly addresses: readonly AnsweredAddress[] }
  | { readonly kind: 'foreign' | 'malformed' | 'truncated' | 'hidden' };

/** An address of the name in the question, directly or at the end of a chain of aliases (CNAME). */
export interface AnsweredAddress {
  readonly address: Address;
  /** The smallest TTL of the records on the chain. */
  readonly ttlSeconds: number;
}

const TYPE_A = 1;
const TYPE_CNAME = 5;
const TYPE_AAAA = 28;
const TYPE_SVCB = 64;
const TYPE_HTTPS = 65;
/** Keys of the IPv4 and IPv6 hints of a service binding, with the length of an address. */
const HINT_BYTES = new Map([
  [4, 4],
  [6, 16],
]);
/** Longest chain of aliases; resolvers follow fewer. */
const MAX_LINKS = 32;
const FLAG_RESPONSE = 0x8000;
const FLAG_TRUNCATED = 0x0200;

/** Parses the answer to `query`, which was sent with the id `upstreamId`. The returned bytes carry the client's id. */
export function readAnswer(
  message: Buffer,
  query: DnsQuery,
  upstreamId: number,
  mayAnswer: (address: Address) => boolean,
): ReadAnswer {
  if (!isAnswerTo(message, query, upstreamId)) return { kind: 'foreign' };
  if ((message.readUInt16BE(2) & FLAG_TRUNCATED) !== 0) return { kind: 'truncated' };
  const answerCount = message.readUInt16BE(6);
  const count = answerCount + message.readUInt16BE(8) + message.readUInt16BE(10);
  const sections = readRecords(message, HEADER_BYTES + query.question.length, count);
  if (sections === null) return { kind: 'malformed' };
  const answered: AnsweredAddress[] = [];
  const chain = chainFrom(query.name, message, sections.records.slice(0, answerCount));
  for (const [index, record] of sections.records.entries()) {
    const parts = addressesIn(record);
    if (parts === null) return { kind: 'malformed' };
    for (const part of parts) {
      const address = addressFromBytes(part);
      if (address === null || !mayAnswer(address)) return { kind: 'hidden' };
      const isAddressRecord = record.type === TYPE_A || record.type === TYPE_AAAA;
      if (index >= answerCount || !isAddressRecord) continue;
      const ttl = chain.get(readName(message, record.start) ?? '.');
      if (ttl !== undefined) answered.push({ address, ttlSeconds: Math.min(ttl, record.ttlSeconds) });
    }
  }
  const bytes = Buffer.from(message.subarray(0, sections.end));
  bytes.writeUInt16BE(query.id, 0);
  return { kind: 'answer', bytes, addresses: answered };
}

/**
 * The name in the question and its aliases, each with its remaining TTL. Addresses of other names are ignored, in any section of the
 * message.
 */
function chainFrom(
  name: string,
  message: Buffer,
  answers: readonly DnsRecord[],
): ReadonlyMap<string, number> {
  const chain = new Map([[name, Number.POSITIVE_INFINITY]]);
  const aliases = answers
    .filter(({ type }) => type === TYPE_CNAME)
    .map(({ start, dataStart, ttlSeconds }) => ({
      owner: readName(message, start),
      target: readName(message, dataStart),
      ttlSeconds,
    }));
  // Servers write aliases in any order; each round resolves at least one more, or ends.
  for (let round = 0, size = 0; round < MAX_LINKS && chain.size > size; round += 1) {
    size = chain.size;
    for (const { owner, target, ttlSeconds } of aliases) {
      const ttl = owner === null ? undefined : chain.get(owner);
      if (ttl !== undefined && target !== null && !chain.has(target))
        chain.set(target, Math.min(ttl, ttlSeconds));
    }
  }
  return chain;
}

/** Checks the random id and the repeated question. A forger would have to guess both, since the socket is connected to the resolver. */
function isAnswerTo(message: Buffer, query: DnsQuery, upstreamId: number): boolean {
  const end = HEADER_BYTES + query.question.length;
  if (message.length < end || message.readUInt16BE(0) !== upstreamId) return false;
  if ((message.readUInt16BE(2) & FLAG_RESPONSE) === 0 || message.readUInt16BE(4) !== 1) return false;
  const question = message.subarray(HEADER_BYTES, end);
  const typeAt = question.length - 4;
  if (!question.subarray(typeAt).equals(query.question.subarray(typeAt))) return false;
  // Resolvers may change the case of the name.
  return lowerCaseName(question) === lowerCaseName(query.question);
}

function lowerCaseName(question: Buffer): string {
  return question.toString('latin1', 0, question.length - 4).toLowerCase();
}

/** Every address in a record that a client may connect to; null when its data is malformed. */
function addressesIn(record: DnsRecord): readonly Uint8Array[] | null {
  switch (record.type) {
    case TYPE_A:
      return record.data.length === 4 ? [record.data] : null;
    case TYPE_AAAA:
      return record.data.length === 16 ? [record.data] : null;
    case TYPE_SVCB:
    case TYPE_HTTPS:
      return addressHints(record.data);
    default:
      return [];
  }
}

/** Address hints of a service binding (RFC 9460 §2.2): priority, target name, then key, length and value. */
function addressHints(data: Buffer): readonly Uint8Array[] | null {
  let offset = data.length < 2 ? null : skipName(data, 2);
  const hints: Uint8Array[] = [];
  while (offset !== null && offset < data.length) {
    if (offset + 4 > data.length) return null;
    const key = data.readUInt16BE(offset);
    const end = offset + 4 + data.readUInt16BE(offset + 2);
    if (end > data.length) return null;
    // Cuts the value into addresses; a piece that is too short is not public, so the whole answer is hidden.
    const size = HINT_BYTES.get(key);
    if (size !== undefined) {
      for (let at = offset + 4; at < end; at += size) hints.push(data.subarray(at, Math.min(at + size, end)));
    }
    offset = end;
  }
  return offset === null ? null : hints;
}
