import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { chmod, cp, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { after, before, suite, test } from 'node:test';
import { promisify } from 'node:util';
import { createKey } from '@svc/server/keys';
import { TestServer } from '../e2e/start-server.ts';
import { BUSYBOX } from '../engine/start-engine.ts';
import { NODE_22 } from '../sdk/install-sdk.ts';

const ROOT = resolve(import.meta.dirname, '../..');
const NOBODY = 65534;
const run = promisify(execFile);

suite('the packages for npm', { timeout: 300_000 }, () => {
  /** An empty project outside of the checkout that a user without rights can read. */
  let project = '';
  let packages = '';
  let server: TestServer;
  let env: NodeJS.ProcessEnv;

  before(async () => {
    packages = await mkdtemp(join(tmpdir(), 'svc-npm-packages-'));
    project = await mkdtemp(join(tmpdir(), 'svc-npm-project-'));
    await chmod(project, 0o755);
    await run(process.execPath, [join(ROOT, 'scripts/build-packages.ts'), packages, '--npm']);
    // The dependency that a registry would give.
    await run('npm', ['pack', '--silent', '--pack-destination', packages, join(ROOT, 'node_modules/cborg')]);
    const archives = (await readdir(packages)).map((name) => join(packages, name));
    await writeFile(join(project, 'package.json'), '{"private": true, "type": "module"}\n');
    await run('npm', ['install', '--silent', '--offline', '--no-audit', '--no-fund', ...archives], {
      cwd: project,
    });
    // What users without rights run it with: the one of the checkout may lie where they cannot read.
    await cp(NODE_22, join(project, 'node22'), { dereference: true });
    server = await TestServer.start({ args: [], engineArgs: ['--isolation', 'container'] });
    const { key } = await createKey(server.engine.folder, { namespace: 'default' });
    env = { PATH: '/usr/bin:/bin', HOME: '/nonexistent', SVC_API_URL: server.url, SVC_API_KEY: key };
  });
  after(async () => {
    await server?.destroy();
    for (const folder of [packages, project]) await rm(folder, { recursive: true, force: true });
  });

  /** As a user without rights, who has no checkout. */
  const asUser = async (...args: string[]) =>
    await run(join(project, 'node22'), args, { cwd: project, env, uid: NOBODY, gid: NOBODY });
  const svc = async (...words: string[]) => await asUser('node_modules/@svc/cli/svc.js', ...words);

  test('say what they are, and name nothing of the workspace', async () => {
    for (const name of ['sdk', 'cli']) {
      const folder = join(project, 'node_modules/@svc', name);
      const files = await readdir(folder);
      for (const wanted of ['LICENSE', 'README.md', 'package.json'])
        assert.ok(files.includes(wanted), wanted);
      const manifest = (await import(join(folder, 'package.json'), { with: { type: 'json' } })) as {
        default: Record<string, unknown>;
      };
      const { version, license, repository, engines, dependencies } = manifest.default;
      assert.match(String(version), /^\d+\.\d+\.\d+$/);
      assert.equal(license, 'Apache-2.0');
      assert.match(JSON.stringify(repository), /"type":"git","url":"git\+https:/);
      assert.deepEqual(engines, { node: '>=22' });
      assert.doesNotMatch(JSON.stringify(dependencies ?? {}), /svc|workspace|file:/);
      // grep fails when it finds nothing.
      const foreign = `(from|import|import\\() ?["']@svc/|${ROOT}`;
      await assert.rejects(run('grep', ['-rE', foreign, folder, '--include=*.js', '--include=*.d.ts']), {
        code: 1,
      });
    }
  });

  test('let a program of Node 22 run something', async () => {
    const program = `
      import { Sandbox } from '@svc/sdk';
      import { uploadTree } from '@svc/sdk/node';
      const sandbox = await Sandbox.create({ image: '${BUSYBOX}' });
      console.log(process.version, typeof uploadTree, (await sandbox.exec('echo', ['hello'])).text());
      await sandbox.remove();
    `;
    await writeFile(join(project, 'program.mjs'), program);
    const { stdout } = await asUser('program.mjs');
    assert.match(stdout, /^v22\.\S+ function hello\n\n$/);
  });

  test('have types that stand every check', async () => {
    const program = `
      import { Sandbox, type ExecResult } from '@svc/sdk';
      import { downloadTree } from '@svc/sdk/node';
      export async function main(): Promise<ExecResult> {
        // @ts-expect-error: there is no such option
        await Sandbox.create({ imagine: 'x' });
        const sandbox = await Sandbox.create({ image: 'x' });
        await downloadTree(sandbox, '/a', '/b');
        return await sandbox.exec('true');
      }
    `;
    await writeFile(join(project, 'typed.mts'), program);
    const flags =
      '--noEmit --strict --target es2024 --lib esnext,dom --module nodenext --skipLibCheck false --types node';
    const roots = ['--typeRoots', join(ROOT, 'node_modules/@types')];
    const compiler = join(ROOT, 'node_modules/typescript/bin/tsc');
    await run(process.execPath, [compiler, ...flags.split(' '), ...roots, 'typed.mts'], { cwd: project });
  });

  test('give a user without rights and checkout a command line', async () => {
    const { stdout: version } = await svc('--version');
    assert.match(version, /^\d+\.\d+\.\d+\n$/);
    assert.equal((await svc('run', BUSYBOX, 'echo', 'hello')).stdout, 'hello\n');
    await svc('run', '-d', '--name', 'kept', BUSYBOX, 'sleep', '1000');
    assert.match((await svc('ps')).stdout, /kept/);
    await writeFile(join(project, 'note'), 'a note');
    await svc('cp', 'note', 'kept:/note');
    assert.equal((await svc('exec', 'kept', 'cat', '/note')).stdout, 'a note');
    await svc('rm', '-f', 'kept');
    assert.match((await svc('--help')).stdout, /list sandboxes/);
  });

  test('refuse by a sentence what works on the machine of the server', async () => {
    for (const words of [['server', 'start'], ['engine', 'status'], ['doctor'], ['org', 'ls'], ['install']]) {
      const failure = await svc(...words).then(
        () => null,
        (error: unknown) => error as { readonly stderr: string; readonly code: number },
      );
      assert.match(failure?.stderr ?? '', /this works on the machine of the server/, words.join(' '));
      assert.equal(failure?.code, 2);
    }
  });
});
