import { execFile, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, readlinkSync } from 'node:fs';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { waitUntil } from '@svc/contract/testing';
import { addGit, addPython, copyProgram, importNode } from '../engine/interpreter-images.ts';
import { SupervisedServer } from '../e2e/supervised-server.ts';
import { importChanged } from '../engine/image-fixture.ts';

const ROOT = resolve(import.meta.dirname, '../..');
const TIMEOUT_MS = 300_000;
const exec = promisify(execFile);

/**
 * What a reader has after `make run`: a server on 127.0.0.1:5555 that asks for no key, and the demo images. In a network of its
 * own, so that addresses and ports can be those of the documents.
 */
export class FreshMachine {
  readonly #network: ChildProcess;
  readonly #server: SupervisedServer;
  readonly #home: string;
  /** What commands exported, as a shell that stays open has it. */
  #exports = '';

  private constructor(network: ChildProcess, server: SupervisedServer, home: string) {
    this.#network = network;
    this.#server = server;
    this.#home = home;
  }

  static async start(): Promise<FreshMachine> {
    const network = spawn('unshare', ['--net', 'sh', '-c', 'ip link set lo up && exec sleep infinity'], {
      stdio: 'ignore',
    });
    await waitUntil(() => isApart(network.pid ?? 0), { what: 'the network is there' });
    const server = await SupervisedServer.prepare();
    const home = await mkdtemp(join(tmpdir(), 'svc-reader-'));
    const machine = new FreshMachine(network, server, home);
    try {
      await machine.shell('./svc server start --dev --detach');
      await machine.#importImages();
      return machine;
    } catch (error) {
      await machine.close();
      throw error;
    }
  }

  /** Runs a block as it is, in the folder of the checkout; a command that fails fails it. */
  async shell(block: string): Promise<string> {
    const kept = join(this.#home, 'exports');
    const commands = (await commandsOf(block)).map(onTerminal);
    const script = [
      this.#exports,
      'set -e; exec < /dev/null',
      ...commands,
      `export -p | grep ' SVC_' > ${kept} || true`,
    ];
    const output = await this.#run('bash', ['-c', script.join('\n')]);
    this.#exports = await readFile(kept, 'utf8');
    return output;
  }

  async typescript(program: string): Promise<string> {
    return await this.#run(process.execPath, ['--input-type=module-typescript', '--eval', program]);
  }

  async close(): Promise<void> {
    // Without what the documents exported: the reader is gone.
    this.#exports = '';
    await this.shell('./svc server start --dev --detach || true; ./svc rm -f $(./svc ps -aq) || true').catch(
      () => undefined,
    );
    await this.#server.clear();
    const ended = once(this.#network, 'exit');
    this.#network.kill('SIGKILL');
    await ended;
    await rm(this.#home, { recursive: true, force: true });
  }

  async #run(program: string, words: readonly string[]): Promise<string> {
    const place = ['--net', '--target', String(this.#network.pid), '--', program, ...words];
    const { PATH = '' } = process.env;
    const env = { PATH, HOME: this.#home, SVC_HOME: this.#server.folder, TERM: 'xterm' };
    try {
      return (await exec('nsenter', place, { cwd: ROOT, env, timeout: TIMEOUT_MS })).stdout;
    } catch (error) {
      const { stdout, stderr } = error as { readonly stdout: string; readonly stderr: string };
      throw new Error(`it failed, having said:\n${stdout}\n${stderr}`, { cause: error });
    }
  }

  /** By the names of those of `svc image build-demo`, from the programs of this host: quicker than from packages. */
  async #importImages(): Promise<void> {
    const engine = { client: this.#server.engine() };
    await importChanged(engine, 'svc/base', async () => {});
    await importNode(engine, 'svc/node');
    await importChanged(engine, 'svc/python', async (root) => {
      await addPython(root);
      await addGit(root);
      await copyProgram(root, '/bin/bash', 'bash');
      await writeFile(join(root, 'etc/os-release'), 'NAME=demo\n');
    });
  }
}

function isApart(pid: number): boolean {
  try {
    const namespace = readlinkSync(`/proc/${pid}/ns/net`);
    const isReady = readFileSync(`/proc/${pid}/cmdline`, 'utf8').startsWith('sleep');
    return isReady && namespace !== readlinkSync('/proc/self/ns/net');
  } catch {
    // Not started yet.
    return false;
  }
}

/** Lines belong together until the shell has nothing to complain about. */
async function commandsOf(block: string): Promise<readonly string[]> {
  const commands: string[] = [];
  let begun = '';
  for (const line of block.split('\n')) {
    begun += `${line}\n`;
    const isWhole =
      !line.endsWith('\\') &&
      (await exec('bash', ['-n', '-c', begun]).then(
        () => true,
        () => false,
      ));
    if (!isWhole) continue;
    commands.push(begun.trim());
    begun = '';
  }
  if (begun.trim() !== '') throw new Error(`this is no whole command: ${begun}`);
  return commands.filter((command) => command !== '' && !command.startsWith('#'));
}

/** A person at a terminal leaves the shell again; other commands have none. */
function onTerminal(command: string): string {
  if (!/ -it | ssh /.test(command)) return command;
  const quoted = command.replaceAll("'", String.raw`'\''`);
  return `while sleep 1; do echo exit || exit 0; done | script -qec '${quoted}' /dev/null`;
}
