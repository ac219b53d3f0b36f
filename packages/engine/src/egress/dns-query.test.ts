import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { RCODE, readQuery, writeQuery } from './dns-query.ts';
import { encodeName, encodeQuery, TYPE, words } from '../testing/dns-samples.ts';

function rcodeOf(message: Buffer): number | string {
  const read = readQuery(message);
  return read.kind === 'reply' ? read.bytes.readUInt16BE(2) & 0xf : read.kind;
}

test('a question is read with its name in lower case, its type and the size its client takes', () => {
  const read = readQuery(encodeQuery('WWW.Example.com', { id: 77, type: TYPE.aaaa, ednsBytes: 1232 }));
  assert.ok(read.kind === 'query');
  const { id, name, type, maxUdpBytes } = read.query;
  assert.deepEqual(
    { id, name, type, maxUdpBytes },
    { id: 77, name: 'www.example.com', type: TYPE.aaaa, maxUdpBytes: 1232 },
  );
});

test('a forwarded query holds the question and the EDNS options under another id, and nothing else', () => {
  const query = encodeQuery('example.com', { ednsBytes: 1232 });
  const read = readQuery(Buffer.concat([query, Buffer.from('more bytes of the client')]));
  assert.ok(read.kind === 'query');
  const expected = Buffer.from(query);
  expected.writeUInt16BE(999, 0);
  assert.deepEqual(writeQuery(read.query, 999), expected);
});

test('EDNS is rewritten: a size within bounds and the DNSSEC flag, and no bytes of the client', () => {
  const option = Buffer.concat([words(65_001, 12), Buffer.from('of my choice')]);
  const passed = (size: number, high: number, low: number) => {
    const record = Buffer.concat([Buffer.from([0]), words(TYPE.opt, size, high, low, option.length), option]);
    const read = readQuery(
      Buffer.concat([words(1, 0x0100, 1, 0, 0, 1), encodeName('example.com'), words(1, 1), record]),
    );
    assert.ok(read.kind === 'query');
    return writeQuery(read.query, 1).subarray(-11);
  };
  const rebuilt = (size: number, low: number) =>
    Buffer.concat([Buffer.from([0]), words(TYPE.opt, size, 0, low, 0)]);
  assert.deepEqual(passed(1232, 0, 0x8000), rebuilt(1232, 0x8000));
  assert.deepEqual(passed(65_535, 0x1f2e, 0x7fff), rebuilt(4096, 0));
  assert.deepEqual(passed(1, 0, 0), rebuilt(512, 0));
});

test('answers, other operations, transfers, other classes and malformed questions are not passed on', () => {
  assert.equal(rcodeOf(Buffer.alloc(11)), 'ignore');
  assert.equal(rcodeOf(encodeQuery('example.com', { flags: 0x8180 })), 'ignore');
  assert.equal(rcodeOf(encodeQuery('example.com', { flags: 0x2800 })), RCODE.notImplemented);
  assert.equal(rcodeOf(encodeQuery('example.com', { type: TYPE.axfr })), RCODE.refused);
  const header = words(1, 0x0100, 1, 0, 0, 0);
  assert.equal(
    rcodeOf(Buffer.concat([header, encodeName('version.bind'), words(TYPE.txt, 3)])),
    RCODE.refused,
  );
  assert.equal(rcodeOf(Buffer.concat([header, encodeName('example.com')])), RCODE.formatError);
  assert.equal(
    rcodeOf(Buffer.concat([header, words(0xc00c, TYPE.a, 1)])),
    RCODE.formatError,
    'a name that points at itself',
  );
  assert.equal(
    rcodeOf(Buffer.concat([words(1, 0x0100, 2, 0, 0, 0), encodeName('a'), words(1, 1)])),
    RCODE.formatError,
  );
});

test('a dot inside a label does not make a name look like another', () => {
  const label = Buffer.from('\x0bexample.com\0', 'latin1');
  const message = Buffer.concat([words(1, 0x0100, 1, 0, 0, 0), label, words(TYPE.a, 1)]);
  assert.equal(rcodeOf(message), RCODE.formatError);
});

test('a name has at most 255 bytes', () => {
  const label = 'a'.repeat(49);
  const longest = [label, label, label, label, 'b'.repeat(53)].join('.');
  assert.equal(encodeName(longest).length, 255);
  assert.equal(rcodeOf(encodeQuery(longest)), 'query');
  assert.equal(rcodeOf(encodeQuery(`${longest}b`)), RCODE.formatError);
});

test('no packet makes it throw, and what is refused gets no more than a header (50,000 random ones)', () => {
  const body = fc.uint8Array({ maxLength: 300, size: 'max' });
  // Half of them with a header that invites to read on.
  const head = fc.option(fc.nat(5).map((records) => words(1, 0x0100, 1, 0, 0, records)));
  fc.assert(
    fc.property(head, body, (header, bytes) => {
      const read = readQuery(Buffer.concat([header ?? Buffer.alloc(0), bytes]));
      if (read.kind === 'reply') assert.equal(read.bytes.length, 12);
    }),
    { numRuns: 50_000 },
  );
});

test('a question with changed bytes is understood or refused, and what is understood is understood again (25,000)', () => {
  const changes = fc.array(fc.tuple(fc.nat(60), fc.nat(255)), { maxLength: 4 });
  fc.assert(
    fc.property(changes, fc.nat(60), (edits, length) => {
      const message = encodeQuery('www.example.com', { ednsBytes: 1232 });
      for (const [at, value] of edits) if (at < message.length) message[at] = value;
      const read = readQuery(message.subarray(0, length > 50 ? message.length : length));
      if (read.kind !== 'query') return;
      const again = readQuery(writeQuery(read.query, read.query.id));
      assert.ok(again.kind === 'query');
      assert.deepEqual(again.query.question, read.query.question);
    }),
    { numRuns: 25_000 },
  );
});
