import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { describeFailure } from './try-on-host.ts';

async function failureOf(script: string, timeout = 60_000): Promise<string> {
  const failure: unknown = await promisify(execFile)('sh', ['-c', script], { timeout }).catch(
    (error: unknown) => error,
  );
  return describeFailure(failure);
}

test('a failed program is described by its last line, a killed one by its signal', async () => {
  assert.equal(await failureOf('echo first >&2; echo last >&2; exit 1'), 'last');
  assert.match(await failureOf('kill -SEGV $$'), /: ended by SIGSEGV$/);
  assert.match(await failureOf('exec sleep 60', 50), /: no answer in 10 s$/);
});
