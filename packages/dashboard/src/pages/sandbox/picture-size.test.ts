import assert from 'node:assert/strict';
import { test } from 'node:test';
import { costOfPicture, MAX_PICTURE_COST } from './picture-cost.ts';
import { sizeOfPicture, type PictureSize } from './picture-size.ts';

type Part = string | readonly number[];
const made = (...parts: readonly Part[]): string =>
  Buffer.concat(
    parts.map((part) => (typeof part === 'string' ? Buffer.from(part, 'latin1') : Buffer.from(part))),
  ).toString('base64');
const times = <T>(count: number, value: T): T[] => Array.from({ length: count }, () => value);
const big = (number: number, length: number) =>
  Array.from({ length }, (_, index) => Math.floor(number / 256 ** (length - 1 - index)) % 256);
const little = (number: number, length: number) => big(number, length).toReversed();

const chunk = (type: string, data: readonly number[]) => made(big(data.length, 4), type, data, [0, 0, 0, 0]);
const png = (width: number, height: number, ...chunks: readonly string[]) =>
  Buffer.concat(
    [
      made('\x89PNG\r\n\x1a\n'),
      chunk('IHDR', [...big(width, 4), ...big(height, 4), 1, 0, 0, 0, 0]),
      ...chunks,
      chunk('IEND', []),
    ].map((part) => Buffer.from(part, 'base64')),
  ).toString('base64');

const segment = (marker: number, data: readonly number[]) => [
  0xff,
  marker,
  ...big(data.length + 2, 2),
  ...data,
];
const frame = (width: number, height: number) =>
  segment(0xc2, [8, ...big(height, 2), ...big(width, 2), 1, 1, 17, 0]);
const scan = [...segment(0xda, [1, 1, 0, 0, 63, 0]), 1, 0xff, 0, 0xff, 0xd0, 2];
const jpeg = (...parts: readonly (readonly number[])[]) => made([0xff, 0xd8], ...parts, [0xff, 0xd9]);

const image = (x: number, y: number, width: number, height: number, colours: readonly number[] = []) => [
  0x2c,
  ...[x, y, width, height].flatMap((number) => little(number, 2)),
  colours.length === 0 ? 0 : 0x80,
  ...colours,
  2,
  1,
  0x3b,
  0,
];
const gif = (width: number, height: number, ...parts: readonly (readonly number[])[]) =>
  made('GIF89a', little(width, 2), little(height, 2), [0x81, 0, 0], times(12, 0x2c), ...parts, [0x3b]);

const part = (type: string, data: readonly number[]) => [
  ...Buffer.from(type),
  ...little(data.length, 4),
  ...data,
  ...(data.length % 2 === 0 ? [] : [0]),
];
const webp = (...parts: readonly (readonly number[])[]) =>
  made('RIFF', little(parts.flat().length + 4, 4), 'WEBP', ...parts);
const lossy = (width: number, height: number) =>
  part('VP8 ', [0, 0, 0, 0x9d, 1, 0x2a, ...little(width, 2), ...little(height, 2)]);
const lossless = (width: number, height: number) =>
  part('VP8L', [0x2f, ...little(width - 1 + (height - 1) * 2 ** 14, 4)]);
const canvas = (width: number, height: number) =>
  part('VP8X', [2, 0, 0, 0, ...little(width - 1, 3), ...little(height - 1, 3)]);
const moving = (width: number, height: number) =>
  part('ANMF', [0, 0, 0, 0, 0, 0, ...little(width - 1, 3), ...little(height - 1, 3), 9]);

test('the size is what the headers say, the largest that they say', () => {
  const cases: readonly (readonly [string, string, PictureSize])[] = [
    ['PNG', png(60_000, 70_000, chunk('IDAT', [1])), { width: 60_000, height: 70_000, frames: 1 }],
    [
      'PNG that moves',
      png(9, 8, chunk('acTL', [...big(2, 4), 0, 0, 0, 0]), chunk('fcTL', [1]), chunk('fcTL', [1])),
      { width: 9, height: 8, frames: 2 },
    ],
    [
      'PNG that says it moves',
      png(9, 8, chunk('acTL', [...big(5000, 4), 0, 0, 0, 0])),
      { width: 9, height: 8, frames: 5000 },
    ],
    [
      'JPEG',
      jpeg(segment(0xe1, [0xff, 0xc0, 1]), segment(0xc4, [0]), frame(65_000, 64_000), scan),
      { width: 65_000, height: 64_000, frames: 1 },
    ],
    ['JPEG of many passes', jpeg(frame(9, 8), ...times(40, scan)), { width: 9, height: 8, frames: 40 }],
    [
      'JPEG of two sizes',
      jpeg(frame(9, 8), scan, frame(900, 800), scan),
      { width: 900, height: 800, frames: 2 },
    ],
    ['GIF', gif(9, 8, [0x21, 0xf9, 4, 0, 0, 0, 0, 0], image(0, 0, 9, 8)), { width: 9, height: 8, frames: 1 }],
    [
      'GIF larger than its screen',
      gif(1, 1, image(5, 6, 60_000, 50_000), image(0, 0, 1, 1, [0, 0, 0, 0, 0, 0])),
      { width: 60_005, height: 50_006, frames: 2 },
    ],
    ['WebP', webp(lossy(9, 8)), { width: 9, height: 8, frames: 1 }],
    ['WebP without loss', webp(lossless(16_000, 15_000)), { width: 16_000, height: 15_000, frames: 1 }],
    [
      'WebP that moves',
      webp(canvas(9, 8), moving(900, 800), moving(9, 8)),
      { width: 900, height: 800, frames: 3 },
    ],
  ];
  for (const [name, picture, size] of cases) assert.deepEqual(sizeOfPicture(picture), size, name);
});

test('what is no picture, or not whole, has no size', () => {
  const whole = [png(9, 8), jpeg(frame(9, 8), scan), gif(9, 8, image(0, 0, 9, 8)), webp(lossy(9, 8))];
  for (const picture of whole) {
    assert.notEqual(sizeOfPicture(picture), null);
    const bytes = Buffer.from(picture, 'base64');
    for (let length = 0; length < bytes.length; length++) {
      const size = sizeOfPicture(bytes.subarray(0, length).toString('base64'));
      // Where something is missing behind the headers it is the same.
      if (size !== null) assert.deepEqual([size.width, size.height], [9, 8]);
    }
  }
  for (const none of [
    '',
    '!',
    'A',
    made('BM', [1, 2, 3, 4]),
    made('<svg/>'),
    png(0, 9),
    gif(9, 9, [0x55]),
    jpeg(frame(9, 8)),
  ])
    assert.equal(sizeOfPicture(none), null, none);
});

test('pictures as people make them cost little, those that unpack to very much more than all may', () => {
  const isDrawn = (picture: string) => costOfPicture(picture) <= MAX_PICTURE_COST;
  const passes = (count: number) => jpeg(frame(4000, 3000), ...times(count, scan));
  const frames = (side: number, count: number) => gif(side, side, ...times(count, image(0, 0, side, side)));
  for (const picture of [png(640, 480), png(6000, 4000), passes(1), passes(12), frames(640, 300)])
    assert.ok(isDrawn(picture));
  for (const picture of [
    png(60_000, 60_000),
    png(20_000, 20_000),
    png(8000, 8000),
    png(1, 100_000),
    passes(65),
    frames(1, 10_000),
    frames(1000, 1000),
    made('BM'),
  ])
    assert.ok(!isDrawn(picture));
});
