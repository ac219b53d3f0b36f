import assert from 'node:assert/strict';
import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { suite, test, type TestContext } from 'node:test';
import { PlatformError } from '@svc/contract/errors';
import { tarOf } from '../testing/test-layers.ts';
import { DEFAULT_IMAGE_LIMITS } from './image-limits.ts';
import { recognizeArchive, spreadArchive } from './spread-archive.ts';
import { unpackArchive } from './unpack-archive.ts';

/** An archive has taken over the process that reads it: here a program of the attacker's runs in its place. */
suite('a reader of archives that was taken over', () => {
  const say = (answer: unknown) => `writeSync(2, ${JSON.stringify(JSON.stringify(answer))});`;
  const counts = { entries: 1, unpackedBytes: 1, dropped: 0 };
  const lies: Readonly<Record<string, string>> = {
    'says nothing': '',
    'says what is not JSON': `writeSync(2, 'x');`,
    'says an answer without its parts': say({ output: { counts } }),
    'counts less than nothing': say({ output: { counts: { ...counts, unpackedBytes: -1 }, opaque: [] } }),
    'counts what is no number': say({ output: { counts: { ...counts, entries: '1' }, opaque: [] } }),
    'refuses with an essay': say({ refusal: { message: 'x'.repeat(10_000), details: null } }),
    'answers another question': say({ output: 'tar' }),
    'answers, and fails': `${say({ output: { counts, opaque: [] } })} process.exit(1);`,
  };
  for (const [what, program] of Object.entries(lies)) {
    test(`is not believed when it ${what}`, async (t) => {
      const { folder, take } = await place(t);
      await assert.rejects(take(`readAll(); ${program}`), (error) => {
        assert.match(String(error), /the process that reads archives ended with/);
        return !PlatformError.is(error);
      });
      assert.deepEqual(await readdir(folder), []);
    });
  }

  test('cannot claim to have read what it did not, so its layer has no other name than its own', async (t) => {
    const { take } = await place(t);
    const large = Buffer.alloc(8 * 1024 ** 2);
    const program = `writeSync(1, Buffer.alloc(1024)); ${say({ output: { counts, opaque: [] } })}`;
    await assert.rejects(take(program, large), /did not read all of one/);
  });

  test('cannot write more than its archive could hold', async (t) => {
    const { take } = await place(t);
    await assert.rejects(take(`for (;;) writeSync(1, Buffer.alloc(4096));`), { code: 'invalid_image' });
  });

  for (const [what, program] of [
    ['takes nothing', ''],
    ['takes everything and says nothing', 'readAll();'],
    ['never stops writing nothing', 'readAll(); writeSync(1, Buffer.alloc(512));'],
  ] as const) {
    test(`is ended when it ${what}, and its archive is refused`, async (t) => {
      const { folder, take } = await place(t);
      const forever = `${program} setInterval(() => {}, 1000);`;
      await assert.rejects(take(forever, Buffer.alloc(2 * 1024 ** 2), 1000), {
        code: 'invalid_image',
        message: /what reads it stood still for 1 seconds/,
      });
      assert.deepEqual(await readdir(folder), []);
    });
  }

  test('cannot keep its caller waiting for what kind an archive is', async (t) => {
    const { base } = await place(t);
    const archive = join(base, 'archive.tar');
    await writeFile(archive, await tarOf([{ name: 'a', body: 'x' }]));
    const program = await programIn(base, 'readAll(); setInterval(() => {}, 1000);');
    const limits = { ...DEFAULT_IMAGE_LIMITS, maxIdleMs: 1000 };
    const recognized = recognizeArchive(archive, AbortSignal.timeout(100_000), limits, program);
    await assert.rejects(recognized, { code: 'invalid_image', message: /stood still/ });
  });

  test('cannot make the memory of its parent grow', async (t) => {
    const { take } = await place(t);
    const program = `readAll(); for (let i = 0; i < 512; i++) writeSync(2, Buffer.alloc(65536, 'x'));`;
    await assert.rejects(take(program), (error) => error instanceof Error && error.message.length < 1000);
  });

  test('cannot have a file of the host read as one of the archive', async (t) => {
    const { base, folder } = await place(t);
    const link = await tarOf([{ name: '0', type: 'symlink', linkname: '/etc/shadow', body: '' }]);
    const archive = join(base, 'archive.tar');
    await writeFile(archive, await tarOf([{ name: 'manifest.json', body: 'x'.repeat(4096) }]));
    const program = await programIn(
      base,
      `readAll(); writeSync(1, Buffer.from('${link.toString('base64')}', 'base64')); ${say({ output: [['manifest.json', 0]] })}`,
    );
    const limits = { ...DEFAULT_IMAGE_LIMITS, minFreeBytes: 0 };
    await assert.rejects(
      spreadArchive(archive, folder, limits, AbortSignal.timeout(100_000), program),
      /not a regular file/,
    );
  });
});

async function place(t: TestContext) {
  const base = await mkdtemp(join(tmpdir(), 'svc-reader-'));
  t.after(() => rm(base, { recursive: true }));
  const folder = join(base, 'layer');
  await mkdir(folder);
  const tar = await tarOf([{ name: 'a', body: 'x' }]);
  const take = async (source: string, bytes = tar, maxIdleMs = 60_000) => {
    async function* archive() {
      for (let at = 0; at < bytes.length; at += 65_536) yield bytes.subarray(at, at + 65_536);
    }
    const limits = { ...DEFAULT_IMAGE_LIMITS, minFreeBytes: 0, maxIdleMs };
    const signal = AbortSignal.timeout(100_000);
    return unpackArchive('rewrite', archive, folder, limits, signal, await programIn(base, source));
  };
  return { base, folder, take };
}

async function programIn(base: string, source: string): Promise<string> {
  const path = join(base, 'program.mjs');
  const readAll = 'const readAll = () => { while (readSync(0, Buffer.alloc(65536)) > 0); };';
  const imports = `import { readSync, writeSync } from 'node:fs';`;
  await writeFile(path, `${imports}\n${readAll}\n${source}\n`, { mode: 0o644 });
  return path;
}
