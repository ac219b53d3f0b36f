import assert from 'node:assert/strict';
import { test } from 'node:test';
import { PlatformError } from '@svc/contract/errors';
import fc from 'fast-check';
import { DEFAULT_IMAGE_LIMITS, type ImageLimits } from './image-limits.ts';
import { LayerRules, type KeptEntry } from './layer-rules.ts';
import type { TarHeader } from './tar-entries.ts';

const part = fc.constantFrom(
  'a',
  'b',
  'c',
  '..',
  '.',
  '',
  '.wh.a',
  '.wh..wh..opq',
  'x\uFFFD',
  '.wh...',
  '.wh.',
);
const path = fc.array(part, { minLength: 1, maxLength: 4 }).map((parts) => parts.join('/'));
const entry: fc.Arbitrary<TarHeader> = fc.record({
  name: path,
  linkname: path,
  type: fc.constantFrom(
    'file',
    'directory',
    'symlink',
    'link',
    'fifo',
    'block-device',
    'character-device',
    null,
  ),
  size: fc.constant(0),
  mode: fc.nat(0o177777),
  uid: fc.integer({ min: -5, max: 200_000 }),
  gid: fc.integer({ min: -5, max: 200_000 }),
  mtime: fc.date(),
});

test('entries kept from any archive stay inside, below folders only, and map into a sandbox', () => {
  fc.assert(
    fc.property(fc.array(entry, { maxLength: 12 }), (entries) => {
      for (const kept of keptOf(entries)) check(kept);
    }),
    { numRuns: 3000 },
  );

  function check(kept: readonly KeptEntry[]): void {
    const kinds = new Map<string, string>();
    for (const { name, type, linkname, uid = -1, gid = -1, devmajor, devminor } of kept) {
      const parts = name
        .replace(/^\.\//, '')
        .split('/')
        .filter((each) => each !== '');
      assert.ok(!name.startsWith('/') && !parts.includes('..') && !name.includes('\uFFFD'), name);
      parts.slice(0, -1).forEach((_, index) => {
        const above = kinds.get(parts.slice(0, index + 1).join('/'));
        assert.ok(above === undefined || above === 'directory', `${name} lies below a ${above}`);
      });
      if (type === 'link') assert.ok(kinds.has(linkname ?? ''), 'a hard link points to what is there');
      if (type === 'character-device') assert.deepEqual([devmajor, devminor], [0, 0]);
      assert.ok(type !== 'block-device' && type !== 'fifo');
      assert.ok(uid >= 0 && uid <= 65_535 && gid >= 0 && gid <= 65_535);
      kinds.set(parts.join('/'), type === 'link' ? (kinds.get(linkname ?? '') ?? type) : type);
    }
  }
});

test('a layer with more bytes or more files than the limits allow is refused', () => {
  const header: TarHeader = {
    name: 'a',
    type: 'file',
    size: 6,
    mode: 0o644,
    uid: 0,
    gid: 0,
    mtime: new Date(0),
  };
  const refusedAfter = (limits: Partial<ImageLimits>) => {
    const rules = new LayerRules({ ...DEFAULT_IMAGE_LIMITS, ...limits });
    rules.decide(header);
    assert.throws(
      () => rules.decide({ ...header, name: 'b' }),
      (error) => PlatformError.is(error, 'invalid_image') && /more than/.test(error.message),
    );
  };
  refusedAfter({ maxUnpackedBytes: 11 });
  refusedAfter({ maxEntries: 1 });
});

/** What reaches the disk until an entry is refused. */
function* keptOf(entries: readonly TarHeader[]): Generator<readonly KeptEntry[]> {
  const rules = new LayerRules(DEFAULT_IMAGE_LIMITS);
  const kept: KeptEntry[] = [];
  try {
    for (const each of entries) {
      const decision = rules.decide(each);
      if (decision !== null) kept.push(decision);
    }
    kept.push(...rules.finish());
  } catch (error) {
    if (!PlatformError.is(error, 'invalid_image')) throw error;
  }
  yield kept;
}
