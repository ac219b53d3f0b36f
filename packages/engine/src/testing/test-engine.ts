import { randomBytes } from 'node:crypto';
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { SvcHostCalls } from '../host/svc-host-calls.ts';
import { LinuxNetwork, type LinuxNetworkOptions } from '../network/linux-network.ts';
import { linkPrefix, tableName } from '../network/ruleset.ts';
import { command } from './command.ts';

/** The host resources of one engine: its folder, name and addresses. Networks opened on it follow each other. */
export class TestEngine implements AsyncDisposable {
  readonly options: Omit<LinuxNetworkOptions, 'hostCalls' | 'logger'>;
  readonly hostCalls = new SvcHostCalls();
  readonly warnings: string[] = [];
  readonly #opened: LinuxNetwork[] = [];

  /** `octet`, 64 to 127, distinguishes engines of one test; concurrent test runs are distinguished by their pid. */
  static async make(octet: number, options: Partial<LinuxNetworkOptions> = {}): Promise<TestEngine> {
    return new TestEngine({
      runFolder: await mkdtemp(join(tmpdir(), 'svc-network-')),
      addressPool: `100.${octet}.${process.pid % 256}.0/24`,
      instance: randomBytes(4).toString('hex'),
      firstHostId: 0x10000000,
      prepared: { loopback: 1, public: 2 },
      ...options,
    });
  }

  private constructor(options: TestEngine['options']) {
    this.options = options;
  }

  open(overrides: Partial<LinuxNetworkOptions> = {}): LinuxNetwork {
    const logger = {
      info: () => undefined,
      warn: (_: unknown, text?: string) => void this.warnings.push(text ?? ''),
    };
    const network = new LinuxNetwork({ ...this.options, hostCalls: this.hostCalls, logger, ...overrides });
    this.#opened.push(network);
    return network;
  }

  /** Every resource of this engine on the host. */
  async traces(): Promise<readonly string[]> {
    const { runFolder, instance } = this.options;
    const folders = await readdir(join(runFolder, 'slots')).catch(() => []);
    const mounts = (await command('cat', '/proc/self/mounts'))
      .split('\n')
      .filter((line) => line.includes(runFolder));
    const links = (await readdir('/sys/class/net')).filter((name) => name.startsWith(linkPrefix(instance)));
    const elements = (await this.table()).match(/"v[0-9a-f]+-+\w+" \. [\da-f.:]+/g) ?? [];
    return [...folders, ...mounts, ...links, ...elements];
  }

  /** The engine's nftables table as nft prints it; empty when there is none. */
  async table(): Promise<string> {
    const tables = await command('nft', 'list', 'tables');
    const name = tableName(this.options.instance);
    return tables.includes(name) ? command('nft', 'list', 'table', 'inet', name) : '';
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await using undo = new AsyncDisposableStack();
    undo.defer(() => rm(this.options.runFolder, { recursive: true, force: true }));
    undo.defer(() => this.hostCalls.close());
    for (const network of this.#opened) await network.close();
    // Removes resources that the test left in use.
    const last = this.open();
    undo.defer(() => last.close());
    await last.recover([]);
  }
}
