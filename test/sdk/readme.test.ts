import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { promisify } from 'node:util';
import { createKey } from '@svc/server/keys';
import { importPython } from '../e2e/interpreter-images.ts';
import { TestServer } from '../e2e/start-server.ts';

const ROOT = join(import.meta.dirname, '../..');
const README = readFileSync(join(ROOT, 'packages/sdk/README.md'), 'utf8');

/** What each block prints, by the heading above it; a heading may have more than one. */
const EXPECTED: Readonly<Record<string, readonly RegExp[]>> = {
  'Run something': [/^0 hello\n\n1 true\n$/],
  'Talk to a process': [/^got one\ngot two\n0\n$/],
  'Leave a process behind': [/^working\n\n?(.|\n)*done\n\nexit\n$/],
  'Run code': [/^42\nfast\nNameError\n$/],
  'Use a terminal': [/^true\n$/],
  'Move files': [/^hello\nhello\.txt 5\n5\n$/, /^2\n\n$/],
  'Watch files': [/^created file draft\n(modified file draft\n)+renamed file posts\/first\n$/],
  'Act on failures': [/^too slow\n$/],
  'Keep data, see what happened': [/^1024\n\n(sandbox_created\n)+\d+\n$/],
  'In a browser': [/^(\S+ \w+\n)*$/],
};

interface Example {
  readonly heading: string;
  readonly code: string;
}

function examples(): readonly Example[] {
  return README.split(/^## /m).flatMap((section) => {
    const heading = section.slice(0, section.indexOf('\n'));
    return [...section.matchAll(/^```ts\n([\s\S]*?)^```$/gm)].map(([, code = '']) => ({ heading, code }));
  });
}

let server: TestServer;
let env: NodeJS.ProcessEnv;

before(async () => {
  server = await TestServer.start({ args: [], engineArgs: ['--isolation', 'container'] });
  await importPython(server.engine);
  const { key } = await createKey(server.engine.folder, { namespace: 'default' });
  env = { ...process.env, SVC_API_URL: server.url, SVC_API_KEY: key };
});
after(() => server.destroy());

test('every example has something to be held against, and the other way round', () => {
  const counts = Map.groupBy(examples(), ({ heading }) => heading);
  assert.deepEqual(
    [...counts].map(([heading, found]) => [heading, found.length]),
    Object.entries(EXPECTED).map(([heading, outputs]) => [heading, outputs.length]),
  );
});

for (const [heading, outputs] of Object.entries(EXPECTED)) {
  test(`the examples of "${heading}" do what they say and end by themselves`, async () => {
    const blocks = examples().filter((example) => example.heading === heading);
    for (const [index, { code }] of blocks.entries()) {
      const args = ['--input-type=module-typescript', '--eval', code];
      const { stdout } = await promisify(execFile)(process.execPath, args, {
        cwd: ROOT,
        env,
        timeout: 100_000,
      });
      assert.match(stdout, outputs[index] ?? /^$/);
    }
  });
}
