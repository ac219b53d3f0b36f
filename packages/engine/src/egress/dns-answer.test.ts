import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { readAnswer as readAnswerFor, type ReadAnswer } from './dns-answer.ts';
import { formatAddress } from '../policy/address.ts';
import { mayAnswer } from '../policy/decide.ts';
import { resolvePolicy } from '../policy/resolve-policy.ts';
import { HOST_NETWORKS } from '../testing/host-networks.ts';
import { readQuery, type DnsQuery } from './dns-query.ts';
import {
  addressRecord,
  aliasRecord,
  encodeAnswer,
  encodeName,
  encodeQuery,
  TYPE,
  words,
  type SampleRecord,
} from '../testing/dns-samples.ts';

const POLICY = resolvePolicy(undefined);
const UPSTREAM_ID = 0xbeef;
const ASKED = encodeQuery('example.com', { id: UPSTREAM_ID });
const QUERY = queryOf(encodeQuery('example.com', { id: 0x1234 }));

function queryOf(message: Buffer): DnsQuery {
  const read = readQuery(message);
  assert.ok(read.kind === 'query');
  return read.query;
}

/** As a sandbox with the default policy is answered. */
function readAnswer(message: Buffer, query: DnsQuery, upstreamId: number): ReadAnswer {
  return readAnswerFor(message, query, upstreamId, (address) => mayAnswer(POLICY, address, HOST_NETWORKS));
}

function kindOf(records: readonly SampleRecord[]): string {
  return readAnswer(encodeAnswer(ASKED, records), QUERY, UPSTREAM_ID).kind;
}

test('an answer with public addresses is passed on unchanged but for the id of the client', () => {
  const answer = encodeAnswer(ASKED, ['93.184.216.34', '2606:4700::1111'].map(addressRecord));
  const read = readAnswer(answer, QUERY, UPSTREAM_ID);
  assert.ok(read.kind === 'answer');
  assert.equal(read.bytes.readUInt16BE(0), 0x1234);
  assert.deepEqual(read.bytes.subarray(2), answer.subarray(2));
});

test('an answer with any address that is not public counts as rebinding', () => {
  const hidden =
    '127.0.0.1 127.255.0.1 0.0.0.0 10.1.2.3 172.16.0.1 172.31.255.255 192.168.1.1 100.64.0.1 169.254.169.254 169.254.0.1 ' +
    '224.0.0.251 255.255.255.255 :: ::1 fc00::1 fd12::1 fe80::1 ff02::fb ::ffff:7f00:1 64:ff9b::a00:1 2002:7f00:1::';
  for (const address of hidden.split(' ')) {
    assert.equal(kindOf([addressRecord('93.184.216.34'), addressRecord(address)]), 'hidden', address);
  }
});

test('addresses next to the refused ranges are public', () => {
  const open = [
    '9.255.255.255',
    '11.0.0.0',
    '100.63.255.255',
    '100.128.0.0',
    '172.15.0.1',
    '172.32.0.1',
    '223.255.255.255',
  ];
  for (const address of [...open, '2a00::1', '::ffff:808:808'])
    assert.equal(kindOf([addressRecord(address)]), 'answer', address);
});

test('address hints of a service binding count as addresses', () => {
  const binding = (...parameters: readonly Buffer[]): SampleRecord => ({
    type: TYPE.https,
    data: Buffer.concat([words(1), encodeName('svc.example.com'), ...parameters]),
  });
  const hint = (key: number, address: string) => {
    const { data } = addressRecord(address);
    return Buffer.concat([words(key, data.length), data]);
  };
  const protocols = Buffer.concat([words(1, 3), Buffer.from('\x02h2')]);
  assert.equal(kindOf([binding(protocols, hint(4, '93.184.216.34'))]), 'answer');
  assert.equal(kindOf([binding(protocols, hint(4, '10.0.0.1'))]), 'hidden');
  assert.equal(kindOf([binding(hint(6, 'fd00::1'))]), 'hidden');
  assert.equal(kindOf([binding(words(4, 3), Buffer.from([1, 2, 3]))]), 'hidden', 'a piece of an address');
  assert.equal(kindOf([binding(words(4, 400))]), 'malformed');
});

test('a message with another id, another question or no question is foreign', () => {
  const good = encodeAnswer(ASKED, [addressRecord('93.184.216.34')]);
  const kind = (message: Buffer) => readAnswer(message, QUERY, UPSTREAM_ID).kind;
  assert.equal(kind(good), 'answer');
  assert.equal(readAnswer(good, QUERY, UPSTREAM_ID ^ 1).kind, 'foreign');
  assert.equal(kind(ASKED), 'foreign', 'a question is no answer');
  for (const other of [
    encodeQuery('example.org', { id: UPSTREAM_ID }),
    encodeQuery('example.com', { id: UPSTREAM_ID, type: TYPE.aaaa }),
  ]) {
    assert.equal(kind(encodeAnswer(other, [])), 'foreign');
  }
  assert.equal(
    kind(encodeAnswer(encodeQuery('EXAMPLE.com', { id: UPSTREAM_ID }), [])),
    'answer',
    'case does not matter',
  );
  assert.equal(kind(good.subarray(0, 20)), 'foreign');
});

test('an incomplete answer is malformed, one with the truncation flag is truncated', () => {
  const answer = encodeAnswer(ASKED, [addressRecord('93.184.216.34')]);
  assert.equal(readAnswer(answer.subarray(0, answer.length - 1), QUERY, UPSTREAM_ID).kind, 'malformed');
  assert.equal(readAnswer(encodeAnswer(ASKED, [], { flags: 0x8380 }), QUERY, UPSTREAM_ID).kind, 'truncated');
  assert.equal(kindOf([{ type: TYPE.a, data: Buffer.alloc(5) }]), 'malformed');
});

test('addresses at the end of a chain of aliases belong to the name, for the smallest TTL of the chain', () => {
  const answered = (...records: readonly SampleRecord[]) => {
    const read = readAnswer(encodeAnswer(ASKED, records), QUERY, UPSTREAM_ID);
    assert.ok(read.kind === 'answer');
    return read.addresses.map(({ address, ttlSeconds }) => `${formatAddress(address)} ${ttlSeconds}`);
  };
  const at = (owner: string, address: string) => ({ ...addressRecord(address), owner, ttl: 300 });
  const chain = [
    aliasRecord('example.com', 'cdn.example.net', 900),
    aliasRecord('CDN.example.net', 'edge.example.org', 20),
  ];
  const [first, second] = chain;
  assert.ok(first && second);
  const end = at('edge.EXAMPLE.org', '93.184.216.34');
  assert.deepEqual(answered(...chain, end), ['93.184.216.34 20']);
  assert.deepEqual(answered(end, second, first), ['93.184.216.34 20'], 'in any order');
  const unrelated = at('evil.example', '93.184.216.35');
  assert.deepEqual(
    answered(...chain, end, unrelated),
    ['93.184.216.34 20'],
    'no record of the chain leads to it',
  );
  assert.deepEqual(answered(second, end), [], 'the chain does not begin with the name asked for');
  const loop = [aliasRecord('example.com', 'a.example'), aliasRecord('a.example', 'example.com')];
  assert.deepEqual(answered(...loop, at('a.example', '93.184.216.36')), ['93.184.216.36 60']);
});

test('no packet makes it throw (50,000 random ones behind a good question)', () => {
  fc.assert(
    fc.property(
      fc.nat(5),
      fc.nat(5),
      fc.uint8Array({ maxLength: 300, size: 'max' }),
      (answers, others, bytes) => {
        const header = words(UPSTREAM_ID, 0x8180, 1, answers, others, 0);
        const read = readAnswer(Buffer.concat([header, ASKED.subarray(12), bytes]), QUERY, UPSTREAM_ID);
        assert.notEqual(read.kind, 'foreign');
      },
    ),
    { numRuns: 50_000 },
  );
});

test('no changed byte lets a private address through (50,000 changed answers)', () => {
  const answer = encodeAnswer(ASKED, ['93.184.216.34', '10.0.0.1'].map(addressRecord));
  const privateAt = answer.length - 4;
  const edits = fc.array(fc.tuple(fc.nat(privateAt - 1), fc.nat(255)), { maxLength: 3 });
  fc.assert(
    fc.property(edits, (changes) => {
      const message = Buffer.from(answer);
      for (const [at, value] of changes) message[at] = value;
      const read = readAnswer(message, QUERY, UPSTREAM_ID);
      // With a smaller count or another type the last record is cut off or is no address; it must never survive as one.
      if (read.kind !== 'answer' || read.bytes.length < answer.length) return;
      assert.notDeepEqual(read.bytes.subarray(privateAt - 12), answer.subarray(privateAt - 12));
    }),
    { numRuns: 50_000 },
  );
});
