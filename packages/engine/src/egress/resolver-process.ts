import { programFile } from '@svc/contract/node-program';
import type { HostNetworks } from '../policy/groups.ts';
import type { NetworkReport } from '../policy/network-decision.ts';
import type { ResolvedPolicy } from '../policy/resolve-policy.ts';
import type { Pin, ResolverConfig, ResolverOrder } from './egress-messages.ts';
import { SupervisedProcess, type SupervisedProcessOptions } from './supervised-process.ts';

type Given = 'hostProgram' | 'recordFile' | 'logger' | 'codeCache';

export interface ResolverOptions extends Pick<SupervisedProcessOptions, Given> {
  readonly config: () => ResolverConfig;
  /** Called with the port that receives queries from now on, also after each replacement of the process. */
  readonly onListening: (port: number) => Promise<void>;
  readonly onReport: (client: string, report: NetworkReport) => void;
  /** Returns when the packet filter and the proxy have them. */
  readonly onPin: (client: string, pins: readonly Pin[]) => Promise<void>;
}

const MAIN = programFile(import.meta.url, {
  built: '../../build/resolver/main.js',
  source: 'resolver-main.ts',
});

/** The process that answers the DNS queries of sandboxes. It has no secrets and reads no connections. */
export class ResolverProcess {
  readonly #process: SupervisedProcess<ResolverOrder>;

  constructor({ config, onListening, onReport, onPin, ...given }: ResolverOptions) {
    this.#process = new SupervisedProcess({
      ...given,
      name: 'resolver',
      about: {},
      prefix: [],
      choosesAddress: true,
      link: null,
      // The host replaces the file that names its resolvers, which may be a link into any folder.
      shown: [],
      group: null,
      // It waits for an answer to each name that leads somewhere.
      maxReportsPerSecond: null,
      main: MAIN,
      config,
      onListening: ({ ipv4 }) => onListening(ipv4),
      onReport: (report, answer) => {
        if (report.kind === 'decided') return onReport(report.client, report.report);
        const { id, client, pins } = report;
        const settle = (done: boolean) => answer({ kind: 'pinned', id, done } satisfies ResolverOrder);
        onPin(client, pins).then(
          () => settle(true),
          (error: unknown) => {
            given.logger.warn({ error, client }, 'A sandbox cannot be led to the addresses of a name');
            settle(false);
          },
        );
      },
    });
  }

  get pid(): number | undefined {
    return this.#process.pid;
  }

  /** Resolves when queries are answered: by the process of an earlier engine if it still runs, which is then replaced in the background. */
  async start(): Promise<void> {
    await this.#process.takeOver();
  }

  /**
   * Sets the policy of a sandbox; null: it is gone, or has the default. Returns the addresses that the sandbox has resolved, none while the
   * process is away, which gets the policy when it starts. Rejects while queries still go to the process of an earlier engine.
   */
  async setPolicy(client: string, policy: ResolvedPolicy | null, isProxied = false): Promise<readonly Pin[]> {
    if (policy !== null) await this.#process.whenReady();
    return await this.#process.ask((id) => ({ kind: 'setPolicy', id, client, policy, isProxied }));
  }

  /** The addresses that a sandbox has resolved; none while the process is away. */
  async known(client: string): Promise<readonly Pin[]> {
    return await this.#process.ask((id) => ({ kind: 'tellKnown', id, client }));
  }

  /** Sets the scope of a sandbox. */
  setScope(client: string, scope: string): void {
    this.#process.tell({ kind: 'setScope', client, scope });
  }

  setHostNetworks(hostNetworks: HostNetworks): void {
    this.#process.tell({ kind: 'setHostNetworks', hostNetworks });
  }

  /** The sandbox with that address is gone; the next one with it is another one. */
  forget(client: string): void {
    this.#process.tell({ kind: 'forget', client });
  }

  async close(): Promise<void> {
    await this.#process.close();
  }
}
