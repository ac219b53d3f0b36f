import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readFile, rm, writeFile } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { before, test } from 'node:test';
import { promisify } from 'node:util';

const ROOT = resolve(import.meta.dirname, '..');

/** What programs are built into, and arguments with which they print something and exit; none where they take none. */
const PROGRAMS: readonly (readonly [first: string, words: readonly string[], says: RegExp])[] = [
  ['packages/cli/build/main.cjs', ['run', '--help'], /Usage: svc run/],
  ['packages/server/build/main.js', ['--nonsense'], /Unknown option '--nonsense'/],
  ['packages/engine/build/daemon/main.js', ['--nonsense'], /Unknown option '--nonsense'/],
  ['packages/engine/build/resolver/main.js', [], /^The engine starts this program; /],
  ['packages/engine/build/proxy/main.js', [], /^The engine starts this program; /],
];

before(async () => {
  await promisify(execFile)(process.execPath, [join(ROOT, 'scripts/build-programs.ts')]);
});

for (const [first, words, says] of PROGRAMS) {
  test(`${first} runs its build while the sources are unchanged, and else the sources`, async (t) => {
    const built = join(ROOT, first);
    const text = await readFile(built, 'utf8');
    const changed = join(dirname(built), `changed-${process.pid}${/\.\w+$/.exec(first)?.[0]}`);
    t.after(() => rm(changed, { force: true }));
    // One file had another size when it was built.
    const other = text.replace(/(MADE_OF = \[\["[^"]+",)/, '$11');
    assert.notEqual(other, text);
    await writeFile(changed, other);
    const [now, fromSources] = [await loaded(built, words), await loaded(changed, words)];
    assert.match(now, /^loaded \d+ files, 0 of the sources$/m);
    assert.match(fromSources, /^loaded \d+ files, [1-9]\d+ of the sources$/m);
    assert.match(messageOf(now), says);
    assert.equal(messageOf(now), messageOf(fromSources));
  });
}

/** The output of a program until it exits. */
async function loaded(main: string, words: readonly string[]): Promise<string> {
  const hook = `data:text/javascript,${encodeURIComponent(REPORT_LOADED)}`;
  // SAFETY: no shell; our own program.
  const ended = promisify(execFile)(process.execPath, ['--import', hook, main, ...words]);
  const { stdout, stderr } = await ended.catch((error: { stdout: string; stderr: string }) => error);
  return stderr + stdout;
}

/** Without what is another each time. */
function messageOf(output: string): string {
  return output.replace(/^loaded .*$/m, '').replaceAll(/"(?:time|pid)":\d+/g, '');
}

/** At the end of a program: how many files it was made of. */
const REPORT_LOADED = `
import { registerHooks } from 'node:module';
const files = new Set();
const load = (url, context, next) => (url.startsWith('file:') && files.add(url), next(url, context));
registerHooks({ load });
process.on('exit', () => {
  const ofSources = [...files].filter((url) => url.includes('/src/')).length;
  console.log('loaded ' + files.size + ' files, ' + ofSources + ' of the sources');
});`;
