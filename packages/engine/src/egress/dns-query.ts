import { HEADER_BYTES, readPlainName, readRecords } from './dns-records.ts';

export const RCODE = {
  formatError: 1,
  serverFailure: 2,
  noSuchName: 3,
  notImplemented: 4,
  refused: 5,
} as const;
export type Rcode = (typeof RCODE)[keyof typeof RCODE];

/** A fully parsed query of a sandbox. Anything that was not parsed is never forwarded. */
export interface DnsQuery {
  readonly id: number;
  /** Lower case, no trailing dot; DNS policies match this name. */
  readonly name: string;
  readonly type: number;
  /** Name, type and class as the client wrote them. */
  readonly question: Buffer;
  /** The client's EDNS record (RFC 6891); null without one. Options are dropped: they may hold any bytes. */
  readonly edns: { readonly wantsDnssec: boolean } | null;
  /** The longest answer that the client accepts over UDP. */
  readonly maxUdpBytes: number;
  readonly flags: number;
}

export type ReadQuery =
  | { readonly kind: 'query'; readonly query: DnsQuery }
  | { readonly kind: 'reply'; readonly bytes: Buffer }
  | { readonly kind: 'ignore' };

const FLAG = {
  response: 0x8000,
  opcode: 0x7800,
  truncated: 0x0200,
  recursionDesired: 0x0100,
  recursionAvailable: 0x0080,
};
/** Recursion desired, authentic data, checking disabled: the flags a stub resolver may set. */
const PASSED_FLAGS = 0x0130;
const TYPE_OPT = 41;
/** The "DNSSEC OK" flag, in the field where other records have their TTL. */
const EDNS_DO = 0x8000;
const EDNS_BYTES = 11;
const FIRST_TRANSFER_TYPE = 251;
const LAST_TRANSFER_TYPE = 252;
const CLASS_IN = 1;
const MIN_UDP_BYTES = 512;
const MAX_UDP_BYTES = 4096;

/** Parses a message of a sandbox. `ignore` when an answer could cause a loop, `reply` when it is answered without a resolver. */
export function readQuery(message: Buffer): ReadQuery {
  if (message.length < HEADER_BYTES) return { kind: 'ignore' };
  const id = message.readUInt16BE(0);
  const flags = message.readUInt16BE(2);
  if ((flags & FLAG.response) !== 0) return { kind: 'ignore' };
  const refuse = (rcode: Rcode): ReadQuery => ({
    kind: 'reply',
    bytes: header(id, replyFlags(flags, rcode), 0, 0),
  });
  if ((flags & FLAG.opcode) !== 0) return refuse(RCODE.notImplemented);
  if (message.readUInt16BE(4) !== 1 || message.readUInt32BE(6) !== 0) return refuse(RCODE.formatError);

  const name = readPlainName(message, HEADER_BYTES);
  if (name === null || name.end + 4 > message.length) return refuse(RCODE.formatError);
  const additional = readRecords(message, name.end + 4, message.readUInt16BE(10));
  if (additional === null) return refuse(RCODE.formatError);
  const edns = additional.records.filter((record) => record.type === TYPE_OPT);
  if (edns.length > 1 || edns.some((record) => record.bytes[0] !== 0)) return refuse(RCODE.formatError);

  const type = message.readUInt16BE(name.end);
  const isTransfer = type >= FIRST_TRANSFER_TYPE && type <= LAST_TRANSFER_TYPE;
  if (isTransfer || message.readUInt16BE(name.end + 2) !== CLASS_IN) return refuse(RCODE.refused);
  const query = {
    id,
    name: name.name,
    type,
    // Copied, so that a pending query does not keep the whole datagram buffer alive.
    question: Buffer.from(message.subarray(HEADER_BYTES, name.end + 4)),
    edns: edns[0] === undefined ? null : { wantsDnssec: (edns[0].ttlSeconds & EDNS_DO) !== 0 },
    // The class field of an EDNS record is the sender's UDP size.
    maxUdpBytes: Math.min(MAX_UDP_BYTES, Math.max(MIN_UDP_BYTES, edns[0]?.class ?? 0)),
    flags,
  };
  return { kind: 'query', query };
}

/** The message to a resolver: built from the parsed fields only. */
export function writeQuery(query: DnsQuery, id: number): Buffer {
  const parts = [header(id, query.flags & PASSED_FLAGS, 1, query.edns === null ? 0 : 1), query.question];
  if (query.edns !== null) parts.push(ednsRecord(query.maxUdpBytes, query.edns));
  return Buffer.concat(parts);
}

/** An EDNS record of version 0 with the root as name and without options. */
function ednsRecord(maxUdpBytes: number, { wantsDnssec }: NonNullable<DnsQuery['edns']>): Buffer {
  const bytes = Buffer.alloc(EDNS_BYTES);
  bytes.writeUInt16BE(TYPE_OPT, 1);
  bytes.writeUInt16BE(maxUdpBytes, 3);
  bytes.writeUInt32BE(wantsDnssec ? EDNS_DO : 0, 5);
  return bytes;
}

export function writeError(query: DnsQuery, rcode: Rcode): Buffer {
  return Buffer.concat([header(query.id, replyFlags(query.flags, rcode), 1, 0), query.question]);
}

/** Tells the client to ask again over TCP. */
export function writeTruncated(query: DnsQuery): Buffer {
  return Buffer.concat([header(query.id, replyFlags(query.flags, 0) | FLAG.truncated, 1, 0), query.question]);
}

function replyFlags(flags: number, rcode: number): number {
  return FLAG.response | FLAG.recursionAvailable | (flags & (FLAG.opcode | FLAG.recursionDesired)) | rcode;
}

function header(id: number, flags: number, questions: number, additional: number): Buffer {
  const bytes = Buffer.alloc(HEADER_BYTES);
  bytes.writeUInt16BE(id, 0);
  bytes.writeUInt16BE(flags, 2);
  bytes.writeUInt16BE(questions, 4);
  bytes.writeUInt16BE(additional, 10);
  return bytes;
}
