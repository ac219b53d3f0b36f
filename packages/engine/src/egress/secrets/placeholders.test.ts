import assert from 'node:assert/strict';
import { text } from 'node:stream/consumers';
import { Readable } from 'node:stream';
import { test } from 'node:test';
import fc from 'fast-check';
import { BlockedRequest } from './blocked-request.ts';
import { toBytes } from './latin1.ts';
import { Placeholders } from './placeholders.ts';
import { RequestFilter } from './request-filter.ts';
import { strictest, actionFor, type Secret } from './secret-settings.ts';

const HEAD = { method: 'POST', path: '/', headers: [] };
const otherHost = { host: 'evil.test', isPinned: true, isProven: true };

/** A placeholder, and the same with every character written in some way. */
const written = fc
  .array(
    fc.record({
      character: fc.oneof(
        fc.constantFrom(...Array.from('$+/" _{}aZ9é€😀')),
        fc.string({ minLength: 1, maxLength: 1 }).filter((one) => !/[%\\]/.test(one)),
      ),
      way: fc.constantFrom('raw', 'percent', 'PERCENT', 'unicode'),
    }),
    { minLength: 1, maxLength: 12 },
  )
  .map((parts) => ({
    placeholder: parts.map(({ character }) => character).join(''),
    bytes: parts.map(({ character, way }) => encode(character, way)).join(''),
  }));

test('a placeholder is found in every escape form and for any split into chunks', async () => {
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

test('text without a placeholder passes unchanged, for any split into chunks', async () => {
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

test('a value replaces its placeholder in a streamed body, for any split into chunks', async () => {
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

test('the search finds what a naive search finds, in the raw text and with its escapes decoded', () => {
  const few = fc.constantFrom('a', 'A', '4', '1', 'b', '"', '/', ' ', 'é');
  const word = fc.string({ unit: few, minLength: 1, maxLength: 6 });
  const piece = fc.oneof(
    few.map(toBytes),
    fc.tuple(few, fc.constantFrom('percent', 'PERCENT', 'unicode')).map(([one, way]) => encode(one, way)),
    fc.constantFrom('%', '%4', '\\', '\\u', '\\u00', '\\"', '\\/', '\\\\', '%25', '+', '$'),
  );
  const text = fc.array(piece, { maxLength: 40 }).map((pieces) => pieces.join(''));
  const cuts = fc.array(fc.nat(200), { maxLength: 8 });
  const words = fc.uniqueArray(word, { minLength: 1, maxLength: 6 });
  fc.assert(
    fc.property(words, text, cuts, (placeholders, sent, places) => {
      const scan = new Placeholders(placeholders).scan();
      const pieces = split(Buffer.from(sent, 'latin1'), places).map((bytes) => bytes.toString('latin1'));
      const parts = [...pieces.flatMap((each) => scan.push(each, false)), ...scan.push('', true)];
      assert.equal(parts.map((part) => part.text).join(''), sent);
      let at = 0;
      const found = parts.flatMap((part) => {
        at += part.text.length;
        return part.kind === 'found' ? [[at - part.text.length, at, part.index]] : [];
      });
      assert.deepEqual(found, searchNaively(placeholders, sent));
    }),
    { numRuns: 5000 },
  );
});

test('no placeholder makes the search slow', () => {
  const backslashes = new Placeholders(['\\'.repeat(40)]);
  assert.deepEqual(backslashes.allIn(`${'\\'.repeat(39)}x`.repeat(10)), []);
  const percents = new Placeholders(['%'.repeat(1023), '%25'.repeat(341)]);
  assert.deepEqual(percents.allIn('%25'.repeat(340)), []);
  const long = Array.from({ length: 64 }, (_, index) => `${'A'.repeat(1020)}B${10 + index}`);
  const nearly = `${'A'.repeat(1020)}C`.repeat(64);
  assert.deepEqual(new Placeholders(long).allIn(nearly), []);
  assert.deepEqual(new Placeholders([...long.slice(1), 'A']).allIn(nearly), [63]);
  assert.deepEqual(new Placeholders(['41A'.padEnd(1023, 'A')]).allIn('%41'.repeat(22_000)), []);
  const scan = new Placeholders(long).scan();
  const parts = Array.from({ length: 65_536 }, () => scan.push('A', false)).flat();
  assert.equal(parts.length, 65_536 - 1020, 'byte for byte');
});

test('of two placeholders with a common prefix the longer one matches', () => {
  const both = new Placeholders(['$MSB_A', '$MSB_AB']);
  assert.deepEqual(both.allIn('x $MSB_AB y'), [1]);
  assert.deepEqual(both.allIn('x $MSB_A y'), [0]);
  assert.equal(clearOf(['$MSB_A', '$MSB_AB'], 'x $MSB_A'), 'x ');
  assert.deepEqual(both.partsOf('x $MSB_A'), [
    { kind: 'clear', text: 'x ' },
    { kind: 'found', text: '$MSB_A', index: 0 },
  ]);
});

test('bytes are held back only while they may belong to a placeholder', () => {
  assert.equal(clearOf(['$MSB_A'], 'hello $'), 'hello ');
  assert.equal(clearOf(['$MSB_A'], 'hello %2'), 'hello ');
  assert.equal(clearOf(['$MSB_A'], 'hello \\u00'), 'hello ');
  assert.equal(clearOf(['$MSB_A'], 'hello %3'), 'hello %3');
  assert.equal(clearOf(['$MSB_A'], 'hello %4'), 'hello %4', 'an M, with which none begins');
});

test('the action for a placeholder is that of the secret, else of all secrets, else the default', () => {
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
    [secret({ onViolation: { ...to('*.evil.test'), otherwise: 'block' } }), to('*.x.test'), 'leave'],
    [secret({ onViolation: { ...to('*.x.test'), otherwise: 'block' } }), to('*.evil.test'), 'block'],
    [secret(), { ...to('*.x.test'), otherwise: 'block_and_terminate' }, 'block_and_terminate'],
  ] as const;
  for (const [one, whole, expected] of cases)
    assert.equal(actionFor(one, settings(whole), otherHost), expected);
  assert.equal(strictest(['block', 'block_and_terminate', 'block_and_log']), 'block_and_terminate');
  assert.equal(strictest(['block', 'block_and_log']), 'block_and_log');
});

test('a host is allowed by its exact name, the apex of a wildcard or anything, and only when it is proven to be it', () => {
  const settings = { entries: [], onViolation: { type: 'block' } } as const;
  const treat = (one: Secret, changes: object = {}) =>
    actionFor(one, settings, { host: 'api.test', isPinned: true, isProven: true, ...changes });
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
  return new RequestFilter({ entries: [secret({ placeholder })], onViolation: { type: 'block' } }, otherHost);
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

/** The output for a text that may continue. */
function clearOf(placeholders: readonly string[], text: string): string {
  const parts = new Placeholders(placeholders).scan().push(text, false);
  return parts.map((part) => part.text).join('');
}

/** The same by definition: every position, every placeholder. */
function searchNaively(placeholders: readonly string[], text: string): readonly (readonly number[])[] {
  const all = [plainly(text), unescaped(placeholders, text)].flatMap(({ bytes, edges }) =>
    placeholders.flatMap((placeholder, index) =>
      Array.from(bytes, (_, at) => at)
        .filter((at) => bytes.startsWith(toBytes(placeholder), at))
        .map((at) => ({
          start: edges[at]?.start ?? 0,
          end: edges[at + toBytes(placeholder).length - 1]?.end ?? 0,
          index,
          length: toBytes(placeholder).length,
        })),
    ),
  );
  const found: (readonly number[])[] = [];
  let from = 0;
  for (const one of all.toSorted((a, b) => a.start - b.start || b.length - a.length || b.end - a.end)) {
    if (one.start < from) continue;
    found.push([one.start, one.end, one.index]);
    from = one.end;
  }
  return found;
}

interface Reading {
  readonly bytes: string;
  /** Where each of the bytes is written. */
  readonly edges: readonly { readonly start: number; readonly end: number }[];
}

function plainly(text: string): Reading {
  return { bytes: text, edges: Array.from(text, (_, start) => ({ start, end: start + 1 })) };
}

function unescaped(placeholders: readonly string[], text: string): Reading {
  const characters = [...new Set(placeholders.flatMap((placeholder) => Array.from(placeholder)))];
  const ways = characters.flatMap((character) => [
    ...Array.from(toBytes(character), (byte) => [`%${byte.charCodeAt(0).toString(16)}`, byte] as const),
    [encode(character, 'unicode'), toBytes(character)] as const,
    ...('"/'.includes(character) ? [[`\\${character}`, character] as const] : []),
    ...(character === ' ' ? [['+', ' '] as const] : []),
  ]);
  const read: { bytes: string; start: number; end: number }[] = [];
  for (let start = 0; start < text.length; start = read.at(-1)?.end ?? 0) {
    const way = ways.find(([written]) => text.slice(start, start + written.length).toLowerCase() === written);
    const [written, bytes] = way ?? [text[start] ?? '', text[start] ?? ''];
    read.push({ bytes, start, end: start + written.length });
  }
  const edges = read.flatMap(({ bytes, start, end }) => Array.from(bytes, () => ({ start, end })));
  return { bytes: read.map(({ bytes }) => bytes).join(''), edges };
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
