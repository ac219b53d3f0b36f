import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { glob, readFile, rm, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { after, before, suite, test } from 'node:test';
import { promisify } from 'node:util';
import { installSdk } from './install-sdk.ts';

const ROOT = resolve(import.meta.dirname, '../..');
const run = promisify(execFile);

/** They are some 270 kB. As schemas, from which a compiler has to infer the types, they would be 1.8 MB. */
const MAX_DECLARED_BYTES = 320_000;

suite('the types of the built SDK', { timeout: 300_000 }, () => {
  let folder = '';
  before(async () => {
    folder = await installSdk();
  });
  after(() => rm(folder, { recursive: true, force: true }));

  test('are small, and need those of no other package but Node', async () => {
    const sdk = join(folder, 'node_modules/@svc/sdk');
    let bytes = 0;
    const packages = new Set<string>();
    for await (const path of glob('**/*.d.ts', { cwd: sdk })) {
      const text = await readFile(join(sdk, path), 'utf8');
      bytes += Buffer.byteLength(text);
      for (const [, name = ''] of text.matchAll(/(?:from |import\()['"]([^.'"][^'"]*)/g)) packages.add(name);
    }
    assert.ok(bytes > 0 && bytes < MAX_DECLARED_BYTES, `${bytes} bytes`);
    assert.deepEqual(
      [...packages].filter((name) => !name.startsWith('node:')),
      [],
    );
  });

  test('compile in a program that also checks its libraries', async () => {
    const program = `
      import { Sandbox } from '@svc/sdk';
      await using sandbox = await Sandbox.create({ image: 'python' });
      console.log((await sandbox.exec('echo', ['hello'])).text());
    `;
    assert.equal(await compile('three-lines.mts', program, ['--skipLibCheck', 'false']), '');
  });

  test('are those of the sources, for every operation and everything that is exported', async () => {
    const program = `
      import type * as built from '@svc/sdk';
      import type { RestOperationName } from ${JSON.stringify(join(ROOT, 'packages/contract/src/rest/index.ts'))};
      import type * as source from ${JSON.stringify(join(ROOT, 'packages/sdk/src/index.ts'))};

      type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
      type Operations = {
        [Name in RestOperationName as Same<
          [source.RestCallInput<Name>, source.RestCallOutput<Name>],
          [built.RestCallInput<Name>, built.RestCallOutput<Name>]
        > extends true ? never : Name]: true;
      };
      // Assigning nothing fails, and names them, when there are any.
      export const operations: Operations = {};
      export const names: Same<RestOperationName, Parameters<built.Client['call']>[0]> = true;
      export const creates: Same<source.CreateOptions, built.CreateOptions> = true;
    `;
    assert.equal(await compile('same.mts', program, ['--skipLibCheck', '--allowImportingTsExtensions']), '');
  });

  /** What the compiler says about a program in the folder of a user. */
  async function compile(name: string, program: string, flags: readonly string[]): Promise<string> {
    await writeFile(join(folder, name), program);
    const compiler = join(ROOT, 'node_modules/typescript/bin/tsc');
    const strict = ['--noEmit', '--strict', '--exactOptionalPropertyTypes'];
    const target = ['--target', 'es2024', '--lib', 'esnext', '--module', 'nodenext'];
    const types = ['--types', 'node', '--typeRoots', join(ROOT, 'node_modules/@types')];
    return await run(process.execPath, [compiler, ...strict, ...target, ...types, ...flags, name], {
      cwd: folder,
    }).then(
      () => '',
      (error: unknown) => (error as { readonly stdout: string }).stdout,
    );
  }
});
