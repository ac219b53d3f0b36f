/** DNS messages for tests. */
export const TYPE = { a: 1, ns: 2, cname: 5, txt: 16, aaaa: 28, opt: 41, https: 65, axfr: 252 } as const;

export interface SampleRecord {
  readonly type: number;
  readonly data: Buffer;
  /** The default name of a query. */
  readonly owner?: string;
  readonly ttl?: number;
}

export function encodeName(name: string): Buffer {
  const labels = name.split('.').filter((label) => label !== '');
  return Buffer.concat([
    ...labels.map((label) => Buffer.concat([Buffer.from([label.length]), Buffer.from(label, 'latin1')])),
    Buffer.from([0]),
  ]);
}

export function encodeQuery(
  name: string,
  { id = 0x1234, type = 1, flags = 0x0100, ednsBytes = 0 } = {},
): Buffer {
  const edns = ednsBytes === 0 ? [] : [Buffer.from([0]), words(TYPE.opt, ednsBytes, 0, 0, 0)];
  return Buffer.concat([
    words(id, flags, 1, 0, 0, edns.length === 0 ? 0 : 1),
    encodeName(name),
    words(type, 1),
    ...edns,
  ]);
}

/** Answers the query `query`, which has one question and no compression; the default owner name is a pointer to it. */
export function encodeAnswer(
  query: Buffer,
  records: readonly SampleRecord[],
  { flags = 0x8180 } = {},
): Buffer {
  let end = 12;
  while (query[end] !== 0) end += (query[end] ?? 0) + 1;
  return Buffer.concat([
    words(query.readUInt16BE(0), flags, 1, records.length, 0, 0),
    query.subarray(12, end + 5),
    ...records.flatMap(({ type, data, owner, ttl = 60 }) => [
      owner === undefined ? words(0xc00c) : encodeName(owner),
      words(type, 1, 0, ttl, data.length),
      data,
    ]),
  ]);
}

export function addressRecord(address: string): SampleRecord {
  if (!address.includes(':')) return { type: TYPE.a, data: Buffer.from(address.split('.').map(Number)) };
  const [head = '', tail = ''] = address.split('::');
  const groups = (text: string) => text.split(':').filter((group) => group !== '');
  const zeros = Array.from({ length: 8 - groups(head).length - groups(tail).length }, () => '0');
  const all = [...groups(head), ...zeros, ...groups(tail)].map((group) => Number.parseInt(group, 16));
  return { type: TYPE.aaaa, data: words(...all) };
}

export function aliasRecord(owner: string, target: string, ttl = 60): SampleRecord {
  return { type: TYPE.cname, data: encodeName(target), owner, ttl };
}

export function words(...values: readonly number[]): Buffer {
  const bytes = Buffer.alloc(values.length * 2);
  for (const [index, value] of values.entries()) bytes.writeUInt16BE(value, index * 2);
  return bytes;
}
