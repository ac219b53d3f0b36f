import assert from 'node:assert/strict';
import { test } from 'node:test';
import { pino } from 'pino';
import { collectImages } from './collect-images.ts';
import { readConfig } from './config.ts';

const logger = pino({ level: 'silent' });

test('images are collected after the time that is set, again and again, and not at all without one', async (t) => {
  const asked: number[] = [];
  const twice = Promise.withResolvers<void>();
  const images = {
    collect: async (unusedMs: number) => {
      asked.push(unusedMs);
      if (asked.length === 2) twice.resolve();
      // The first round fails; the next one must follow all the same.
      if (asked.length === 1) throw new Error('the disk is full');
      return ['sha256:gone'];
    },
  };
  const keep = readConfig(['--keep-images', '2'], {}).keepImagesMs;
  const timers = collectImages(images, keep, logger, { firstMs: 1, everyMs: 2 });
  t.after(() => timers.forEach((timer) => clearTimeout(timer)));
  const alive = setInterval(() => undefined, 1000);
  await twice.promise;
  clearInterval(alive);
  assert.deepEqual(asked.slice(0, 2), [172_800_000, 172_800_000]);
  assert.deepEqual(collectImages(images, readConfig(['--keep-images', '0'], {}).keepImagesMs, logger), []);
});

test('limits of images come from the command line', () => {
  const { imageLimits, keepImagesMs } = readConfig(['--max-image-gib', '8', '--max-unpack-ratio', '20'], {});
  assert.deepEqual(imageLimits, { maxUnpackedBytes: 8 * 2 ** 30, maxUnpackRatio: 20 });
  assert.equal(keepImagesMs, 604_800_000);
  assert.throws(() => readConfig(['--keep-images', 'soon'], {}), /--keep-images must be a whole number/);
});
