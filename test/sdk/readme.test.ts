import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { promisify } from 'node:util';
import { createKey } from '@svc/server/keys';
import { importChanged } from '../engine/image-fixture.ts';
import { addGit, addPython } from '../engine/interpreter-images.ts';
import { TestServer } from '../e2e/start-server.ts';
import { installSdk, NODE_22 } from './install-sdk.ts';

const ROOT = join(import.meta.dirname, '../..');
const README = readFileSync(join(ROOT, 'packages/sdk/README.md'), 'utf8');

/** What each block prints, by the heading above it; a heading may have more than one. */
const EXPECTED: Readonly<Record<string, readonly RegExp[]>> = {
  'Run something': [/^0 hello\n\n1 true\n1\n2\n3\n$/, /^0 hello\n\n$/],
  'Talk to a process': [/^got one\ngot two\n0\n$/],
  'Leave a process behind': [/^working\n\n?(.|\n)*done\n\nexit\n$/],
  'Run code': [/^42 true\nfast\nNameError\n<b>6<\/b>\n\{ n: 6 \}\n2\n$/],
  'Use a terminal': [/^true\n$/],
  'Move files': [/^hello\nhello\.txt 5\n5\n$/, /^2\n\n$/],
  'Use git': [/^main true\n$/],
  'Watch files': [/^created file draft\n(modified file draft\n)+renamed file posts\/first\n$/],
  'Open a port': [/^200\npublic for an hour: http:\/\/8000-\S+\.localhost:\d+\/\n$/],
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
/** A project of a user with Node 22, with compiled examples; `own` is a key of its own organization. */
let project = '';
let own = '';

before(async () => {
  server = await TestServer.start({ args: [], engineArgs: ['--isolation', 'container'] });
  // With git, as `svc image build-demo` makes it.
  await importChanged(server.engine, 'python', async (root) => {
    await addPython(root);
    await addGit(root);
  });
  const { key } = await createKey(server.engine.folder, { namespace: 'default' });
  env = { ...process.env, SVC_API_URL: server.url, SVC_API_KEY: key };
  own = (await createKey(server.engine.folder, { namespace: 'older' })).key;
  project = await installSdk();
  await compile(project);
});
after(async () => {
  await server.destroy();
  await rm(project, { recursive: true, force: true });
});

/** For Node 22, as the README says; what it takes as it is stays as it is. */
async function compile(folder: string): Promise<void> {
  const compiled: string[] = [];
  for (const [index, { code }] of examples().entries()) {
    const isPlain = !code.includes('await using') && !code.includes(' as const');
    if (!isPlain) compiled.push(`example-${index}.mts`);
    await writeFile(join(folder, `example-${index}.${isPlain ? 'mjs' : 'mts'}`), code);
  }
  const flags = '--target es2022 --lib esnext,dom --module nodenext --strict --skipLibCheck --types node';
  const roots = ['--typeRoots', join(ROOT, 'node_modules/@types')];
  const compiler = join(ROOT, 'node_modules/typescript/bin/tsc');
  await promisify(execFile)(process.execPath, [compiler, ...flags.split(' '), ...roots, ...compiled], {
    cwd: folder,
  });
}

test('every example has an expected output, and every expected output an example', () => {
  const counts = Map.groupBy(examples(), ({ heading }) => heading);
  assert.deepEqual(
    [...counts].map(([heading, found]) => [heading, found.length]),
    Object.entries(EXPECTED).map(([heading, outputs]) => [heading, outputs.length]),
  );
});

for (const [heading, outputs] of Object.entries(EXPECTED)) {
  test(`the examples of "${heading}" do what they say and exit`, async () => {
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

test('every example does the same in Node 22', async () => {
  const seen = new Map<string, number>();
  for (const [index, { heading }] of examples().entries()) {
    const position = seen.get(heading) ?? 0;
    seen.set(heading, position + 1);
    const { stdout } = await promisify(execFile)(NODE_22, [`example-${index}.mjs`], {
      cwd: project,
      env: { ...env, SVC_API_KEY: own },
      timeout: 100_000,
    });
    assert.match(stdout, EXPECTED[heading]?.[position] ?? /^$/, heading);
  }
});
