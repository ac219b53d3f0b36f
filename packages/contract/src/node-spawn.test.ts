import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { test } from 'node:test';

/** Opens all the files it may, tries to start a program, closes them, and tries once more. */
const SHORT_OF_FILES = `
  import { closeSync, openSync } from 'node:fs';
  import { once } from 'node:events';
  import { spawn } from '${import.meta.resolve('./node-spawn.ts')}';
  const files = [];
  try { for (;;) files.push(openSync('/dev/null')); } catch {}
  try { spawn('true', [], { stdio: 'pipe' }); } catch ({ code }) { console.log(code); }
  await new Promise((resolve) => setTimeout(resolve, 10));
  files.map((file) => closeSync(file));
  console.log(...await once(spawn('true', [], { stdio: 'ignore' }), 'exit'));
`;

test('a spawn at the limit of open files fails with an error, and the process lives on', () => {
  const script = ['-c', 'ulimit -n 64; exec "$@"', 'sh', process.execPath, '--input-type=module-typescript'];
  const said = execFileSync('sh', [...script, '--eval', SHORT_OF_FILES], { encoding: 'utf8' });
  assert.equal(said, 'EMFILE\n0 null\n');
});
