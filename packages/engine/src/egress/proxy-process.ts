import { existsSync } from 'node:fs';
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { programFile } from '@svc/contract/node-program';
import type { Surroundings } from '../policy/groups.ts';
import type { NetworkReport } from '../policy/network-decision.ts';
import {
  LISTENER_DESCRIPTORS,
  type Pin,
  type Ports,
  type ProxiedSandbox,
  type ProxyConfig,
  type ProxyOrder,
} from './egress-messages.ts';
import { KeptProcess, type KeptProcessOptions } from './kept-process.ts';

type Given = 'hostProgram' | 'recordFile' | 'logger' | 'group' | 'about';

export interface ProxyOptions extends Pick<KeptProcessOptions, Given> {
  /** Where sandboxes find this host; the one of IPv6 is null when they have none. */
  readonly listenAddresses: { readonly ipv4: string; readonly ipv6: string | null };
  readonly config: () => ProxyConfig;
  /** Connections are to be led to these ports from now on. Called again whenever the process was replaced. */
  readonly onListening: (ports: Ports) => Promise<void>;
  readonly onReport: (client: string, report: NetworkReport) => void;
}

const MAIN = programFile(import.meta.url, { built: '../../build/proxy/main.js', source: 'proxy-main.ts' });

/** Libraries, Node, the program with the modules that it loads from where they are, and the authorities that this host trusts. */
const SHOWN = [
  '/usr',
  dirname(process.execPath),
  // The last two are among what the built program looks at, to tell whether it is in step with its sources.
  ...['packages', 'node_modules', 'package-lock.json', 'scripts/build-programs.ts'].map((name) =>
    fileURLToPath(new URL(`../../../../${name}`, import.meta.url)),
  ),
  '/etc/ssl',
  '/etc/pki',
  '/etc/ca-certificates',
].filter((path) => existsSync(path));

/** More than its sandboxes give it to tell (`told-decisions.ts`). */
const MAX_REPORTS_PER_SECOND = 1000;

/** The process that reads the connections of the sandboxes of one scope. */
export class ProxyProcess {
  readonly #process: KeptProcess<ProxyOrder>;

  constructor({ listenAddresses, config, onListening, onReport, ...given }: ProxyOptions) {
    const listen = (address: string, descriptor: number) => [
      given.hostProgram,
      '--listen',
      address,
      String(descriptor),
    ];
    const { ipv4, ipv6 } = listenAddresses;
    this.#process = new KeptProcess({
      ...given,
      name: 'proxy',
      prefix: [
        ...listen(ipv4, LISTENER_DESCRIPTORS.ipv4),
        ...(ipv6 === null ? [] : listen(ipv6, LISTENER_DESCRIPTORS.ipv6)),
      ],
      choosesAddress: false,
      shown: SHOWN,
      maxReportsPerSecond: MAX_REPORTS_PER_SECOND,
      // What it reads of this engine's is its program.
      codeCache: null,
      main: MAIN,
      config,
      onListening: (ports) => onListening(ports),
      onReport: (report) => {
        if (report.kind === 'decided') onReport(report.client, report.report);
      },
    });
  }

  get pid(): number | undefined {
    return this.#process.pid;
  }

  start(): void {
    this.#process.start();
  }

  /** Rejects when none has listened yet, and none does soon. */
  async whenReady(): Promise<void> {
    await this.#process.whenReady();
  }

  /** Returns when connections are judged by it; one that is away learns it when it starts. null: connections of the sandbox end. */
  async setSandbox(client: string, sandbox: ProxiedSandbox | null): Promise<void> {
    await this.#process.ask((id) => ({ kind: 'setSandbox', id, client, sandbox }));
  }

  /** Tells which names lead the sandbox to which addresses. */
  async remember(client: string, pins: readonly Pin[]): Promise<void> {
    await this.#process.ask((id) => ({ kind: 'remember', id, client, pins }));
  }

  setSurroundings(surroundings: Surroundings): void {
    this.#process.tell({ kind: 'setSurroundings', surroundings });
  }

  async close(): Promise<void> {
    await this.#process.close();
  }
}
