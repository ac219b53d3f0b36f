import { existsSync } from 'node:fs';
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { programFile } from '@svc/contract/node-program';
import type { Link } from '../host/link-words.ts';
import type { HostNetworks } from '../policy/groups.ts';
import type { NetworkReport } from '../policy/network-decision.ts';
import {
  LISTENER_DESCRIPTORS,
  type Pin,
  type Ports,
  type ProxiedSandbox,
  type ProxyConfig,
  type ProxyOrder,
} from './egress-messages.ts';
import { SupervisedProcess, type SupervisedProcessOptions } from './supervised-process.ts';

type Given = 'hostProgram' | 'recordFile' | 'logger' | 'group' | 'about';

export interface ProxyOptions extends Pick<SupervisedProcessOptions, Given> {
  /** Addresses at which sandboxes reach this host; the IPv6 one is null when they have none. */
  readonly listenAddresses: { readonly ipv4: string; readonly ipv6: string | null };
  /** The only way from its network namespace to another. */
  readonly link: Link;
  /** The group that it changes to; its listening sockets have it from the start. */
  readonly groupId: number;
  readonly config: () => ProxyConfig;
  /** Called with the ports to redirect connections to, at the start and after each replacement. */
  readonly onListening: (ports: Ports) => Promise<void>;
  readonly onReport: (client: string, report: NetworkReport) => void;
}

const MAIN = programFile(import.meta.url, { built: '../../build/proxy/main.js', source: 'proxy-main.ts' });

/** Visible folders: libraries, Node, the program with its modules, and the authorities that this host trusts. */
const SHOWN = [
  '/usr',
  dirname(process.execPath),
  // The built program checks the last two to tell whether it is up to date with its sources.
  ...['packages', 'node_modules', 'package-lock.json', 'scripts/build-programs.ts'].map((name) =>
    fileURLToPath(new URL(`../../../../${name}`, import.meta.url)),
  ),
  '/etc/ssl',
  '/etc/pki',
  '/etc/ca-certificates',
].filter((path) => existsSync(path));

/** More than its sandboxes can produce (`decision-reports.ts`). */
const MAX_REPORTS_PER_SECOND = 1000;

/** The process that reads the connections of the sandboxes of one scope. */
export class ProxyProcess {
  readonly #process: SupervisedProcess<ProxyOrder>;

  constructor({ listenAddresses, groupId, config, onListening, onReport, ...given }: ProxyOptions) {
    const listen = (address: string, descriptor: number) => [
      given.hostProgram,
      '--listen',
      address,
      String(descriptor),
      String(groupId),
    ];
    const { ipv4, ipv6 } = listenAddresses;
    this.#process = new SupervisedProcess({
      ...given,
      name: 'proxy',
      prefix: [
        ...listen(ipv4, LISTENER_DESCRIPTORS.ipv4),
        ...(ipv6 === null ? [] : listen(ipv6, LISTENER_DESCRIPTORS.ipv6)),
      ],
      choosesAddress: false,
      shown: SHOWN,
      maxReportsPerSecond: MAX_REPORTS_PER_SECOND,
      // The only files of this engine that it can read are its program.
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

  /** Rejects when no process listens within the deadline. */
  async whenReady(): Promise<void> {
    await this.#process.whenReady();
  }

  /** Resolves when the rules are in effect; a process that is away gets them at its start. null: connections of the sandbox are closed. */
  async setSandbox(client: string, sandbox: ProxiedSandbox | null): Promise<void> {
    await this.#process.ask((id) => ({ kind: 'setSandbox', id, client, sandbox }));
  }

  /** Adds names and the addresses that they resolved to for the sandbox. */
  async remember(client: string, pins: readonly Pin[]): Promise<void> {
    await this.#process.ask((id) => ({ kind: 'remember', id, client, pins }));
  }

  setHostNetworks(hostNetworks: HostNetworks): void {
    this.#process.tell({ kind: 'setHostNetworks', hostNetworks });
  }

  async close(): Promise<void> {
    await this.#process.close();
  }
}
