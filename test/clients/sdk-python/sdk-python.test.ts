import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { after, before, suite, test } from 'node:test';
import { promisify } from 'node:util';
import { createKey } from '@svc/server/keys';
import { TestServer } from '../../e2e/start-server.ts';
import { importChanged } from '../../engine/image-fixture.ts';
import { addGit, addPython } from '../../engine/interpreter-images.ts';
import { buildWheel, installWheel } from './install-wheel.ts';

const ROOT = resolve(import.meta.dirname, '../../..');
const README = readFileSync(join(ROOT, 'packages/sdk-python/README.md'), 'utf8');
const run = promisify(execFile);

/** What the block of each heading of the README prints. */
const EXPECTED: Readonly<Record<string, RegExp>> = {
  'Run something': /^0 hello\n\nFalse\n1\n2\n3\n$/,
  'Await it': /^\['0', '1', '2'\]\n$/,
  'Talk to a process': /^got one\ngot two\n0\n$/,
  'Leave a process behind': /^0 b'working\\n'\n8 b'done\\n'\nexit\n$/,
  'Run code': /^42\nfast NameError\n<b>6<\/b>\n\{'n': 6\}\n$/,
  'Use a terminal': /^True\n$/,
  'Move files': /^hello\nhello\.txt 5\n5\n$/,
  'Copy folders': /^2\n\n$/,
  'Use git': /^main True\n$/,
  'Watch files': /^created draft\n(modified draft\n)+renamed posts\/first\n$/,
  'Open a port': /^http:\/\/8000-\S+\npublic for an hour: http:\/\/8000-\S+\n$/,
  'Act on failures': /^too slow\n$/,
  'Keep data, see what happened': /^1024\n\nsandbox_created\n(True|False)\n$/,
};

suite('the SDK for Python', { timeout: 600_000 }, () => {
  let folder = '';
  let wheel = '';
  let sources = '';
  let newest = '';
  let server: TestServer;
  let env: NodeJS.ProcessEnv;

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'svc-sdk-python-'));
    ({ wheel, sources } = await buildWheel(folder));
    newest = await installWheel(join(folder, 'newest'), wheel, 'newest');
    server = await TestServer.start({ args: [] });
    // With git, as `svc image build-demo` makes it.
    await importChanged(server.engine, 'python', async (root) => {
      await addPython(root);
      await addGit(root);
    });
    const { key } = await createKey(server.engine.folder, { namespace: 'default' });
    // Nothing of the checkout is found but by its installed wheel.
    env = {
      PATH: process.env['PATH'],
      PYTHONDONTWRITEBYTECODE: '1',
      SVC_API_URL: server.url,
      SVC_API_KEY: key,
    };
  });
  after(async () => {
    await server?.destroy();
    await rm(folder, { recursive: true, force: true });
  });

  const runTests = async (python: string, names: readonly string[], more: NodeJS.ProcessEnv = {}) => {
    const program = join(import.meta.dirname, 'run_tests.py');
    // A coroutine that is never awaited is a mistake.
    const options = ['-W', 'error::RuntimeWarning', program, ...names];
    const { stderr } = await run(python, options, { cwd: folder, env: { ...env, ...more } });
    assert.match(stderr, /\nOK\n$/);
    // What asyncio says of tasks and generators that were left.
    assert.doesNotMatch(stderr, /destroyed|never retrieved|never awaited|error occurred/);
  };

  test('does in containers all that it promises, with the newest httpx and websockets', async () => {
    await runTests(newest, []);
  });

  test('does the same with those of Debian 12', async () => {
    const oldest = await installWheel(join(folder, 'oldest'), wheel, 'oldest');
    await runTests(oldest, []);
  });

  test('runs processes, files and code on gVisor', async () => {
    const names = [
      'test_processes.Processes.test_exec_gives_code_and_output',
      'test_processes.Processes.test_a_process_that_takes_too_long_is_killed',
      'test_files.Files.test_content_of_any_size_comes_back',
      'test_files.Files.test_a_watch_says_what_changed',
      'test_code.Code.test_state_is_kept_and_results_come_as_data',
    ];
    await runTests(newest, names, { SVC_TEST_ISOLATION: 'gvisor' });
  });

  test('has types with which a strict program is checked, and which mypy finds no fault in', async () => {
    const python = await installWheel(join(folder, 'types'), wheel, 'types');
    const program = join(folder, 'typed.py');
    await writeFile(program, TYPED);
    const strict = ['-m', 'mypy', '--strict', '--cache-dir', join(folder, 'mypy')];
    await run(python, [...strict, program], { cwd: folder, env });
    const settings = ['--config-file', join(ROOT, 'packages/sdk-python/pyproject.toml')];
    await run(python, [...strict, ...settings, join(ROOT, 'packages/sdk-python/src')], { cwd: folder, env });
  });

  test('comes as a wheel and as sources with licence and README, and with the version of the others', async () => {
    const { version } = JSON.parse(readFileSync(join(ROOT, 'packages/sdk/package.json'), 'utf8')) as {
      version: string;
    };
    const { repository } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as {
      repository: { url: string };
    };
    const { stdout: inWheel } = await run('unzip', ['-l', wheel]);
    const { stdout: inSources } = await run('tar', ['-tzf', sources]);
    for (const name of ['svc_sdk/py.typed', 'licenses/LICENSE', `svc_sdk-${version}.dist-info/METADATA`])
      assert.ok(inWheel.includes(name), name);
    for (const name of ['LICENSE', 'README.md', 'pyproject.toml', 'src/svc_sdk/py.typed'])
      assert.ok(inSources.includes(`svc_sdk-${version}/${name}`), name);
    assert.doesNotMatch(inWheel + inSources, /__pycache__|test/);
    const program =
      "import importlib.metadata as m; print(m.version('svc-sdk'), *m.metadata('svc-sdk').get_all('Project-URL'))";
    const { stdout } = await run(newest, ['-c', program], { cwd: folder, env });
    assert.equal(stdout, `${version} Repository, ${repository.url.replace(/^git\+/, '')}\n`);
  });

  test('every example of the README has an expected output, and every expected output an example', () => {
    assert.deepEqual(
      examples().map(({ heading }) => heading),
      Object.keys(EXPECTED),
    );
  });

  for (const { heading, code } of examples()) {
    test(`the example '${heading}' prints what it should`, async () => {
      const { stdout } = await run(newest, ['-c', code], { cwd: folder, env });
      assert.match(stdout, EXPECTED[heading] ?? /^$/);
    });
  }
});

function examples(): readonly { readonly heading: string; readonly code: string }[] {
  return README.split(/^## /m).flatMap((section) => {
    const heading = section.slice(0, section.indexOf('\n'));
    return [...section.matchAll(/^```python\n([\s\S]*?)^```$/gm)].map(([, code = '']) => ({ heading, code }));
  });
}

const TYPED = `
import asyncio
from svc_sdk import AsyncSandbox, CodeResult, Sandbox, SvcError

def main() -> int:
    with Sandbox.create(image="x") as sandbox:
        result: CodeResult = sandbox.run_code("1", on_stdout=lambda text: print(text.upper()))
        names: list[str] = [file.name for file in sandbox.files.list("/")]
        sandbox.exec("true", workdir="/")  # type: ignore[call-arg]
        code: str = sandbox.exec("true").code  # type: ignore[assignment]
        Sandbox.create(imagine="x")  # type: ignore[call-arg]
        return len(result.output) + len(names) + len(code)

async def other() -> bytes:
    async with await AsyncSandbox.create(image="x", vcpus=2) as sandbox:
        async for chunk in sandbox.files.read_stream("/x"):
            return chunk
    raise SvcError("timeout", "x")

print(main, asyncio.run, other)
`;
