import { execFile } from 'node:child_process';
import { mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { createKey } from '@svc/server/keys';
import { TestServer } from '../../e2e/start-server.ts';
import { importChanged } from '../../engine/image-fixture.ts';
import { addPython, copyProgram } from '../../engine/interpreter-images.ts';

const ROOT = resolve(import.meta.dirname, '../../..');
const PYTHON = '/usr/bin/python3';
/** The frameworks, as they are published. */
const FRAMEWORKS = join(import.meta.dirname, 'python/build');
const PACKAGES = [
  'packages/sdk-python',
  'adapters/deepagents',
  'adapters/harbor',
  'adapters/inspect',
  'adapters/openai-agents-python',
];
const MOST_OUTPUT_BYTES = 16 * 1024 * 1024;
/** What the suite of Inspect asks for; Debian's is a program in Perl. */
const ADDUSER = `#!/bin/sh
for name; do :; done
echo "$name:x:1001:1001::/tmp:/bin/sh" >> /etc/passwd
`;
/** Python loads it first. Of what Harbor's environments use of 3.12, the 3.11 of Debian 12 lacks these names. */
const NEWER_TYPING = `import sys, typing
if sys.version_info < (3, 12):
    import typing_extensions
    typing.override, typing.TypedDict = typing_extensions.override, typing_extensions.TypedDict
`;
const run = promisify(execFile);

/** Our packages, installed as pip does it, beside the frameworks; and one real server for them. */
export class PythonAdapters {
  readonly server: TestServer;
  readonly #folder: string;
  readonly #env: Readonly<Record<string, string>>;

  private constructor(server: TestServer, folder: string, key: string) {
    this.server = server;
    this.#folder = folder;
    this.#env = {
      HOME: folder,
      PATH: '/usr/bin:/bin',
      PYTHONPATH: `${folder}:${folder}/packages:${FRAMEWORKS}`,
      PYTHONDONTWRITEBYTECODE: '1',
      // Of what is installed, which would load what the frameworks have for their own tests.
      PYTEST_DISABLE_PLUGIN_AUTOLOAD: '1',
      SVC_API_URL: server.url,
      SVC_API_KEY: key,
    };
  }

  static async start(): Promise<PythonAdapters> {
    const server = await TestServer.start({ args: [], engineArgs: ['--isolation', 'container'] });
    const folder = await mkdtemp(join(tmpdir(), 'svc-adapters-'));
    try {
      const { key } = await createKey(server.engine.folder, { namespace: 'default' });
      await writeFile(join(folder, 'sitecustomize.py'), NEWER_TYPING);
      const adapters = new PythonAdapters(server, folder, key);
      await Promise.all([adapters.#install(), importImage(server)]);
      return adapters;
    } catch (error) {
      await rm(folder, { recursive: true, force: true });
      await server.destroy();
      throw error;
    }
  }

  /** The last line of pytest, which counts the outcomes; throws with all that it said unless every outcome is expected. */
  async pytest(file: string, ...options: readonly string[]): Promise<string> {
    const words = [
      '-m',
      'pytest',
      '-q',
      '--tb=short',
      '-p',
      'no:cacheprovider',
      '-p',
      'pytest_asyncio.plugin',
      '-o',
      'asyncio_mode=auto',
    ];
    const { stdout } = await this.#python([
      ...words,
      '--rootdir',
      this.#folder,
      ...options,
      join(ROOT, file),
    ]);
    return stdout.trimEnd().split('\n').at(-1) ?? '';
  }

  /** What the program prints. */
  async program(text: string): Promise<string> {
    return (await this.#python(['-c', text])).stdout;
  }

  async destroy(): Promise<void> {
    await this.server.destroy();
    await rm(this.#folder, { recursive: true, force: true });
  }

  /** Built from copies, because building writes beside the sources. */
  async #install(): Promise<void> {
    const target = join(this.#folder, 'packages');
    const words = ['--target', target, '--no-deps', '--no-index', '--no-build-isolation', '--no-compile'];
    const quiet = ['--quiet', '--disable-pip-version-check', '--root-user-action', 'ignore'];
    const anyPython = '--ignore-requires-python';
    const folders = PACKAGES.map((path) => join(ROOT, path));
    await this.#python(['-m', 'pip', 'install', anyPython, ...quiet, ...words, ...folders]);
  }

  async #python(words: readonly string[]): Promise<{ readonly stdout: string }> {
    try {
      return await run(PYTHON, words, { cwd: this.#folder, env: this.#env, maxBuffer: MOST_OUTPUT_BYTES });
    } catch (error) {
      const { stdout, stderr } = error as { readonly stdout: string; readonly stderr: string };
      throw new Error(`it failed, having said:\n${stdout}\n${stderr}`, { cause: error });
    }
  }
}

/** By the name that the examples give it. */
async function importImage({ engine }: TestServer): Promise<void> {
  await importChanged(engine, 'python', async (root) => {
    await addPython(root);
    await symlink('python3', join(root, 'bin/python'));
    // The grep of busybox lacks what deepagents searches with, and its shell runs no other; its tar cannot leave files out.
    const programs = { '/usr/bin/dash': 'sh', '/usr/bin/grep': 'grep', '/usr/bin/tar': 'tar' };
    for (const [path, name] of Object.entries(programs)) {
      await rm(join(root, 'bin', name));
      await copyProgram(root, path, name);
    }
    await writeFile(join(root, 'bin/adduser'), ADDUSER, { mode: 0o755 });
  });
}
