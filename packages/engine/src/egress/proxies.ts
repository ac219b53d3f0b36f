import { createHash } from 'node:crypto';
import { mkdir, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { KeyedMutex } from '@svc/contract/async';
import { PlatformError } from '@svc/contract/errors';
import { BoundedGroup, removeEmptyGroups, tenantsMemoryBytes } from '../cgroup/bounded-group.ts';
import type { Link } from '../host/link-words.ts';
import type { HostNetworks } from '../policy/groups.ts';
import type { ResolvedPolicy } from '../policy/resolve-policy.ts';
import type { Pin, Ports, ProxiedSandbox } from './egress-messages.ts';
import type { ProxySettings } from './proxied-sandboxes.ts';
import { ProxyProcess, type ProxyOptions } from './proxy-process.ts';
import { endRecordedProcess } from './recorded-process.ts';

type Given = 'hostProgram' | 'listenAddresses' | 'logger' | 'onReport';

export interface ProxiesOptions extends Pick<ProxyOptions, Given> {
  /** Distinguishes the cgroups of this engine from those of other engines. */
  readonly instance: string;
  /** Records the processes, so that the next engine can end them. */
  readonly recordFolder: string;
  /** Each process has its own user id, from this one downwards. */
  readonly lastHostId: number;
  /** The group id that all of them share. */
  readonly groupId: number;
  readonly hostNetworks: () => HostNetworks;
  /** The addresses that a sandbox has resolved. */
  readonly pinsOf: (client: string) => readonly Pin[];
  /** Redirects the connections of a scope to these ports; null: they are denied. */
  readonly lead: (scope: ScopeKey, ports: Ports | null) => Promise<void>;
  /** Ends the redirection of a scope's connections. */
  readonly leadNowhere: (scope: ScopeKey) => Promise<void>;
  readonly links: Links;
  /** A process without sandboxes ends after this time; a minute unless given. */
  readonly idleMs?: number | undefined;
  /** The limit of proxies; as many as fit into the memory of all unless given. */
  readonly maxProxies?: number | undefined;
}

/** Links between the network namespaces of proxies and that of the host. */
interface Links {
  /** Removes those that an earlier engine has left. */
  removeAll(): Promise<void>;
  open(): Promise<Link>;
  close(link: Link): Promise<void>;
}

/** A hash of a scope, for names with a limited length and alphabet. */
export type ScopeKey = string;

/** The connections of a sandbox that are redirected to a proxy, and its scope. */
export interface ProxiedRules {
  readonly scope: ScopeKey;
  readonly policy: ResolvedPolicy;
  readonly settings: ProxySettings;
}

interface Proxy {
  readonly process: ProxyProcess;
  readonly group: BoundedGroup;
  readonly hostId: number;
  readonly link: Link;
}

const IDLE_MS = 60_000;
const MIB = 1024 * 1024;
/**
 * One thread does the work, and others collect its garbage. Its memory is at most 128 MiB of heap and twice as much of bodies and
 * windows outside of it (`http/held-bytes.ts`), in addition to the program and its socket buffers.
 */
const LIMITS = { cpus: 2, memoryBytes: 768 * MIB, threads: 64 };
/** The memory of an idle proxy, and a little to work with. */
const LEAST_PROXY_BYTES = 24 * MIB;
/** Fewer than the free ids below those of sandboxes. */
const MOST_PROXIES = 16_384;

/** null is a scope like any other. */
export function scopeKey(scope: string | null): ScopeKey {
  return createHash('sha256').update(JSON.stringify(scope)).digest('hex').slice(0, 16);
}

/**
 * The proxies of this host, one for each scope with a sandbox whose connections are redirected. A proxy is started with the first such
 * sandbox and ended some time after the last; a replacement gets the same configuration. A proxy gets no data of sandboxes of another
 * scope, and its reports about them are ignored.
 */
export class Proxies {
  readonly #options: ProxiesOptions;
  readonly #proxies = new Map<ScopeKey, Proxy>();
  readonly #sandboxes = new Map<string, ProxiedRules>();
  readonly #idle = new Map<ScopeKey, NodeJS.Timeout>();
  readonly #mutex = new KeyedMutex();
  #isClosed = false;

  constructor(options: ProxiesOptions) {
    this.#options = options;
  }

  /** Ends the processes of an earlier engine, and starts those for these sandboxes in the background. */
  async restore(sandboxes: ReadonlyMap<string, ProxiedRules>): Promise<void> {
    const { recordFolder, logger, instance, links } = this.#options;
    await mkdir(recordFolder, { recursive: true, mode: 0o700 });
    for (const name of await readdir(recordFolder)) await endRecordedProcess(join(recordFolder, name));
    await Promise.all([removeEmptyGroups(`${instance}-`), links.removeAll()]);
    for (const [client, rules] of sandboxes) this.#sandboxes.set(client, rules);
    for (const scope of new Set([...sandboxes.values()].map((rules) => rules.scope)))
      this.#open(scope).catch((error: unknown) => logger.warn({ error }, 'A proxy could not be started'));
  }

  /** Returns when the connections of a sandbox are judged by these rules; null ends its redirected connections. */
  async hold(client: string, rules: ProxiedRules | null): Promise<void> {
    const before = this.#sandboxes.get(client);
    if (rules === null) this.#sandboxes.delete(client);
    // First, so that a process that starts from here on has it.
    else this.#sandboxes.set(client, rules);
    if (before !== undefined && before.scope !== rules?.scope) await this.#drop(client, before.scope);
    if (rules === null) return;
    const { process } = await this.#open(rules.scope);
    await process.whenReady();
    await process.setSandbox(client, this.#proxied(client, rules));
  }

  /** Passes resolved addresses of a sandbox to its proxy, if it has one. */
  async remember(client: string, pins: readonly Pin[]): Promise<void> {
    const scope = this.#sandboxes.get(client)?.scope;
    if (scope !== undefined) await this.#proxies.get(scope)?.process.remember(client, pins);
  }

  setHostNetworks(hostNetworks: HostNetworks): void {
    for (const { process } of this.#proxies.values()) process.setHostNetworks(hostNetworks);
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    for (const timer of this.#idle.values()) clearTimeout(timer);
    await this.#mutex.whenIdle();
    const { logger } = this.#options;
    const closed = await Promise.allSettled([...this.#proxies.values()].map((proxy) => this.#close(proxy)));
    for (const outcome of closed)
      if (outcome.status === 'rejected')
        logger.warn(
          { error: outcome.reason as unknown },
          'Not all of a proxy was removed; the next start does it',
        );
    this.#proxies.clear();
  }

  async #drop(client: string, scope: ScopeKey): Promise<void> {
    await this.#proxies.get(scope)?.process.setSandbox(client, null);
    if (this.#of(scope).size > 0 || this.#isClosed) return;
    clearTimeout(this.#idle.get(scope));
    const timer = setTimeout(() => void this.#end(scope), this.#options.idleMs ?? IDLE_MS);
    this.#idle.set(scope, timer.unref());
  }

  #open(scope: ScopeKey): Promise<Proxy> {
    return this.#mutex.run(scope, async () => {
      const running = this.#proxies.get(scope);
      if (running !== undefined) return running;
      await this.#makeRoom();
      await this.#options.lead(scope, null);
      const proxy = this.#make(scope, await this.#options.links.open());
      this.#proxies.set(scope, proxy);
      proxy.process.start();
      return proxy;
    });
  }

  /** Ends an idle proxy when the limit is reached. */
  async #makeRoom(): Promise<void> {
    const fitting = Math.floor(tenantsMemoryBytes() / LEAST_PROXY_BYTES);
    const most = this.#options.maxProxies ?? Math.min(MOST_PROXIES, fitting);
    for (const idle of this.#idle.keys()) {
      if (this.#proxies.size < most) return;
      if (this.#proxies.has(idle)) await this.#end(idle);
    }
    if (this.#proxies.size < most) return;
    throw new PlatformError(
      'insufficient_capacity',
      `This host judges the connections of ${most} organizations at a time, and has no room for another; try again later`,
    );
  }

  #make(scope: ScopeKey, link: Link): Proxy {
    const { recordFolder, instance, groupId, hostNetworks, listenAddresses, lead, onReport, ...rest } =
      this.#options;
    const group = new BoundedGroup(`${instance}-${scope}`, LIMITS);
    const hostId = this.#freeHostId();
    const process = new ProxyProcess({
      ...rest,
      listenAddresses,
      groupId,
      link,
      about: { scope },
      group,
      recordFile: join(recordFolder, `${scope}.json`),
      config: () => ({
        hostId,
        groupId,
        hostNetworks: hostNetworks(),
        hasIpv6: listenAddresses.ipv6 !== null,
        sandboxes: this.#of(scope),
      }),
      onListening: (ports) => lead(scope, ports),
      onReport: (client, report) => {
        // SAFETY: a report can end a sandbox, and this one is about a sandbox of theirs alone.
        if (this.#sandboxes.get(client)?.scope === scope) onReport(client, report);
      },
    });
    return { process, group, hostId, link };
  }

  /** SAFETY: a process could signal another one of the same user, so each proxy has its own. */
  #freeHostId(): number {
    const taken = new Set([...this.#proxies.values()].map(({ hostId }) => hostId));
    let hostId = this.#options.lastHostId;
    while (taken.has(hostId)) hostId -= 1;
    return hostId;
  }

  #of(scope: ScopeKey): ReadonlyMap<string, ProxiedSandbox> {
    return new Map(
      [...this.#sandboxes]
        .filter(([, rules]) => rules.scope === scope)
        .map(([client, rules]) => [client, this.#proxied(client, rules)] as const),
    );
  }

  #proxied(client: string, { policy, settings }: ProxiedRules): ProxiedSandbox {
    return { policy, settings, pins: this.#options.pinsOf(client) };
  }

  async #end(scope: ScopeKey): Promise<void> {
    const { leadNowhere, logger } = this.#options;
    await this.#mutex.run(scope, async () => {
      this.#idle.delete(scope);
      const proxy = this.#proxies.get(scope);
      if (proxy === undefined || this.#isClosed || this.#of(scope).size > 0) return;
      try {
        await leadNowhere(scope);
        this.#proxies.delete(scope);
        await this.#close(proxy);
      } catch (error) {
        logger.warn({ error }, 'A proxy that has no sandbox any more could not be ended');
      }
    });
  }

  async #close({ process, group, link }: Proxy): Promise<void> {
    await process.close();
    await Promise.all([group.remove(), this.#options.links.close(link)]);
  }
}
