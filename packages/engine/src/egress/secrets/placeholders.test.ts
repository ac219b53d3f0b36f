import assert from 'node:assert/strict';
import { text } from 'node:stream/consumers';
import { Readable } from 'node:stream';
import { test } from 'node:test';
import fc from 'fast-check';
import { BlockedRequest } from './blocked-request.ts';
import { Placeholders, toBytes } from './placeholders.ts';
import { RequestFilter } from './request-filter.ts';
import { strictest, treatmentOf, type Secret } from './secret-settings.ts';

const HEAD = { method: 'POST', path: '/', headers: [] };
const somebody = { host: 'evil.test', isPinned: true, isProven: true };

/** A placeholder, and the same with every character written in some way. */
const written = fc
  .array(
    fc.record({
      character: fc.oneof(
        fc.constantFrom(...Array.from('$%\\+/" _{}aZ9é€😀')),
        fc.string({ minLength: 1, maxLength: 1 }).filter((one) => !/[\0\r\n]/.test(one)),
      ),
      way: fc.constantFrom('raw', 'percent', 'PERCENT', 'unicode'),
    }),
    { minLength: 1, maxLength: 12 },
  )
  .map((parts) => ({
    placeholder: parts.map(({ character }) => character).join(''),
    bytes: parts.map(({ character, way }) => encode(character, way)).join(''),
  }));

test('a placeholder is found however its characters are written and wherever the bytes are cut', async () => {
  await fc.assert(
    fc.asyncProperty(
      written,
      fc.uint8Array({ maxLength: 20 }),
      fc.array(fc.nat(200), { maxLength: 6 }),
      async ({ placeholder, bytes }, noise, cuts) => {
        const body = Buffer.concat([noise, Buffer.from(bytes, 'latin1'), noise]);
        await assert.rejects(pass(filterFor(placeholder), split(body, cuts)), BlockedRequest);
      },
    ),
    { numRuns: 500 },
  );
});

test('what holds no placeholder passes as it is, however it is cut', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.uint8Array({ maxLength: 200 }),
      fc.array(fc.nat(200), { maxLength: 6 }),
      async (bytes, cuts) => {
        const body = Buffer.from(bytes);
        assert.equal(
          await pass(filterFor('$MSB_NEVER_IN_THERE'), split(body, cuts)),
          body.toString('latin1'),
        );
      },
    ),
  );
});

test('a value is put in its place in a streamed body, however that is cut', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(fc.nat(80), { maxLength: 6 }), async (cuts) => {
      const filter = new RequestFilter(
        {
          entries: [
            secret({ injection: { headers: false, basicAuth: false, queryParams: false, body: true } }),
          ],
          onViolation: { type: 'block' },
        },
        { host: 'api.test', isPinned: true, isProven: true },
      );
      const body = Buffer.from('{"a":"$MSB_KEY","b":"\\u0024MSB_KEY$MSB_KE"}');
      const head = {
        ...HEAD,
        headers: [
          ['Content-Type', 'application/json'],
          ['Transfer-Encoding', 'chunked'],
        ] as const,
      };
      assert.equal(
        await pass(filter, split(body, cuts), head),
        '{"a":"the \\"value\\"","b":"the \\"value\\"$MSB_KE"}',
      );
    }),
  );
});

test('of two placeholders that begin alike the longer one counts', () => {
  const both = new Placeholders(['$MSB_A', '$MSB_AB']);
  assert.deepEqual(both.allIn('x $MSB_AB y'), [1]);
  assert.deepEqual(both.allIn('x $MSB_A y'), [0]);
  assert.deepEqual(both.search('x $MSB_A', 0, false), { kind: 'partial', start: 2 });
  assert.deepEqual(both.search('x $MSB_A', 0, true), { kind: 'found', start: 2, end: 8, index: 0 });
});

test('bytes are held back only while they may belong to a placeholder', () => {
  const one = new Placeholders(['$MSB_A']);
  assert.deepEqual(one.search('hello $', 0, false), { kind: 'partial', start: 6 });
  assert.deepEqual(one.search('hello %2', 0, false), { kind: 'partial', start: 6 });
  assert.deepEqual(one.search('hello \\u00', 0, false), { kind: 'partial', start: 6 });
  assert.deepEqual(one.search('hello %3', 0, false), { kind: 'none' });
});

test('what is done about a placeholder follows the secret, then the whole, then the default', () => {
  const settings = (onViolation: Secret['onViolation']) => ({
    entries: [],
    onViolation: onViolation ?? ({ type: 'block' } as const),
  });
  const to = (value: string) => ({ type: 'passthrough', hosts: [{ type: 'wildcard', value }] }) as const;
  const cases = [
    [secret({ onViolation: { type: 'block_and_terminate' } }), { type: 'block' }, 'block_and_terminate'],
    [secret(), { type: 'block' }, 'block'],
    [secret({ onViolation: to('*.evil.test') }), { type: 'block' }, 'leave'],
    [secret({ onViolation: to('*.other.test') }), { type: 'block_and_terminate' }, 'block_and_terminate'],
    [secret({ onViolation: to('*.other.test') }), to('evil.test'), 'leave'],
    [secret(), to('*.other.test'), 'block_and_log'],
  ] as const;
  for (const [one, whole, expected] of cases)
    assert.equal(treatmentOf(one, settings(whole), somebody), expected);
  assert.equal(strictest(['block', 'block_and_terminate', 'block_and_log']), 'block_and_terminate');
  assert.equal(strictest(['block', 'block_and_log']), 'block_and_log');
});

test('a host is allowed by its exact name, the apex of a wildcard or anything, and only when it is proven to be it', () => {
  const settings = { entries: [], onViolation: { type: 'block' } } as const;
  const treat = (one: Secret, changes: object = {}) =>
    treatmentOf(one, settings, { host: 'api.test', isPinned: true, isProven: true, ...changes });
  assert.equal(treat(secret()), 'substitute');
  assert.equal(treat(secret({ allowedHosts: [{ type: 'wildcard', value: '*.API.test' }] })), 'substitute');
  assert.equal(treat(secret({ allowedHosts: [{ type: 'any' }] })), 'substitute');
  assert.equal(treat(secret({ allowedHosts: [{ type: 'exact', value: 'pi.test' }] })), 'block');
  assert.equal(treat(secret({ allowedHosts: [{ type: 'wildcard', value: '*.pi.test' }] })), 'block');
  assert.equal(treat(secret(), { isPinned: false }), 'block');
  assert.equal(treat(secret(), { isProven: false }), 'block');
  assert.equal(treat(secret({ requireTlsIdentity: false }), { isProven: false }), 'substitute');
});

function secret(changes: Partial<Secret> = {}): Secret {
  return {
    envVar: 'KEY',
    placeholder: '$MSB_KEY',
    value: 'the "value"',
    allowedHosts: [{ type: 'exact', value: 'api.test' }],
    injection: { headers: true, basicAuth: true, queryParams: false, body: false },
    onViolation: null,
    requireTlsIdentity: true,
    ...changes,
  };
}

function filterFor(placeholder: string): RequestFilter {
  return new RequestFilter({ entries: [secret({ placeholder })], onViolation: { type: 'block' } }, somebody);
}

async function pass(
  filter: RequestFilter,
  chunks: readonly Buffer[],
  head: Parameters<RequestFilter['body']>[0] = HEAD,
): Promise<string> {
  const plan = filter.body(head, { isHttp2: false });
  assert.equal(plan.kind, 'stream');
  const [transform] = plan.kind === 'stream' ? plan.filters() : [];
  assert.ok(transform);
  const source = Readable.from(chunks).on('error', () => undefined);
  return await text(source.pipe(transform).setEncoding('latin1'));
}

function split(body: Buffer, cuts: readonly number[]): readonly Buffer[] {
  const edges = [0, ...cuts.map((cut) => cut % (body.length + 1)).toSorted((a, b) => a - b), body.length];
  return edges
    .slice(1)
    .map((end, index) => body.subarray(edges[index], end))
    .filter(({ length }) => length > 0);
}

function encode(character: string, way: string): string {
  if (way === 'raw') return toBytes(character);
  if (way === 'unicode')
    return character
      .split('')
      .map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
      .join('');
  const hex = [...Buffer.from(character)].map((byte) => `%${byte.toString(16).padStart(2, '0')}`).join('');
  return way === 'PERCENT' ? hex.toUpperCase() : hex;
}
