import { execFile } from 'node:child_process';
import { cp, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { createKey } from '@svc/server/keys';
import { TestServer } from '../../e2e/start-server.ts';
import { importChanged } from '../../engine/image-fixture.ts';
import { addPython, copyProgram } from '../../engine/interpreter-images.ts';
import { NODE_22 } from '../../sdk/install-sdk.ts';

const ROOT = resolve(import.meta.dirname, '../../..');
/** Beside the frameworks, where the packages find them. Not below them: Node runs no TypeScript there. */
const PROJECTS = join(import.meta.dirname, 'js/build');
const CHECKS =
  '--ignoreConfig --noEmit --strict --target es2024 --lib esnext,dom --module nodenext --skipLibCheck --types node';
const MOST_OUTPUT_BYTES = 16 * 1024 * 1024;
const run = promisify(execFile);

/** Our packages for npm as they are built, beside the frameworks as they are published; and one real server for them. */
export class JsAdapters {
  readonly #server: TestServer;
  readonly #folder: string;
  readonly #env: NodeJS.ProcessEnv;

  private constructor(server: TestServer, folder: string, key: string) {
    this.#server = server;
    this.#folder = folder;
    this.#env = { PATH: '/usr/bin:/bin', HOME: folder, SVC_API_URL: server.url, SVC_API_KEY: key };
  }

  static async start(...names: readonly string[]): Promise<JsAdapters> {
    const server = await TestServer.start({ args: [], engineArgs: ['--isolation', 'container'] });
    let folder = '';
    try {
      const { key } = await createKey(server.engine.folder, { namespace: 'default' });
      await mkdir(PROJECTS, { recursive: true });
      folder = await mkdtemp(join(PROJECTS, 'svc-'));
      await writeFile(join(folder, 'package.json'), '{"private": true, "type": "module"}\n');
      await Promise.all([importImage(server), install(folder, names)]);
      return new JsAdapters(server, folder, key);
    } catch (error) {
      if (folder !== '') await rm(folder, { recursive: true, force: true });
      await server.destroy();
      throw error;
    }
  }

  /** How many cases of the adapter's own tests passed; throws with all that they said when one failed. */
  async passed(name: string): Promise<number> {
    const path = join(this.#folder, `${name}.ts`);
    await cp(join(ROOT, 'adapters', name, 'test/cases.ts'), path);
    const { stdout } = await this.#run(NODE_22, '--test-reporter=tap', path);
    return Number(/^# pass (\d+)$/m.exec(stdout)?.[1]);
  }

  /** What the program prints. */
  async program(text: string): Promise<string> {
    const path = join(this.#folder, 'program.mts');
    await writeFile(path, text);
    return (await this.#run(NODE_22, path)).stdout;
  }

  /** Checks the types of programs against those of the packages; throws with what the compiler says. */
  async check(...texts: readonly string[]): Promise<void> {
    const names = texts.map((_text, index) => `checked-${index}.mts`);
    await Promise.all(names.map((name, index) => writeFile(join(this.#folder, name), texts[index] ?? '')));
    const words = [...CHECKS.split(' '), '--typeRoots', join(ROOT, 'node_modules/@types'), ...names];
    await this.#run(process.execPath, join(ROOT, 'node_modules/typescript/bin/tsc'), ...words);
  }

  async destroy(): Promise<void> {
    await this.#server.destroy();
    await rm(this.#folder, { recursive: true, force: true });
  }

  async #run(program: string, ...words: readonly string[]): Promise<{ readonly stdout: string }> {
    try {
      return await run(program, words, { cwd: this.#folder, env: this.#env, maxBuffer: MOST_OUTPUT_BYTES });
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
    // The one of busybox cannot leave files out.
    await rm(join(root, 'bin/tar'));
    await copyProgram(root, '/usr/bin/tar', 'tar');
  });
}

async function install(folder: string, names: readonly string[]): Promise<void> {
  const built = (name: string) => join(folder, 'node_modules/@svc', name);
  const script = (name: string) => join(ROOT, 'scripts', name);
  await run(process.execPath, [script('build-sdk.ts'), built('sdk')]);
  for (const name of names) await run(process.execPath, [script('build-adapter.ts'), name, built(name)]);
}
