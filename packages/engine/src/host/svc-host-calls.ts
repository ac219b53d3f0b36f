import { fileURLToPath } from 'node:url';
import { onAbort } from '@svc/contract/async';
import { HostCallError } from './host-calls.ts';
import type { FrozenDisk, HostCalls, LaunchRequest } from './host-calls.ts';
import { HostProcess } from './host-process.ts';
import { linkWords } from './link-words.ts';

/** Where `npm run build` puts the helper. */
export const BUILT_SVC_HOST = fileURLToPath(new URL('../../../host/build/svc-host', import.meta.url));

/** Longer than any call takes on a loaded machine, apart from those in SLOW_CALLS. */
const CALL_TIMEOUT_MS = 60_000;
const LOOK_MS = 1000;
/** Calls that write out disks or run a program. The helper runs other calls concurrently. */
const SLOW_CALLS: ReadonlySet<string> = new Set(['unmount', 'launch', 'copyFrozen', 'thaw', 'writeDirectly']);

export interface SvcHostOptions {
  readonly binary?: string;
  /** Number of helpers. */
  readonly processes?: number;
  readonly callTimeoutMs?: number;
  /** How often a helper with an open call is checked. */
  readonly lookMs?: number;
}

/** Host calls by resident `svc-host` processes; each call goes to the one with the shortest queue. */
export class SvcHostCalls implements HostCalls {
  readonly #processes: readonly HostProcess[];
  /** A helper for latency-sensitive calls: they must not queue behind a mount, and keep their order. */
  readonly #quick: HostProcess;
  #launchCount = 0;

  constructor({
    binary = BUILT_SVC_HOST,
    processes = 2,
    callTimeoutMs = CALL_TIMEOUT_MS,
    lookMs = LOOK_MS,
  }: SvcHostOptions = {}) {
    this.#processes = Array.from({ length: processes }, () => new HostProcess(binary, callTimeoutMs, lookMs));
    this.#quick = new HostProcess(binary, callTimeoutMs, lookMs);
  }

  /** The helpers that are running. */
  get pids(): readonly number[] {
    return [...this.#processes, this.#quick].flatMap(({ pid }) => (pid === undefined ? [] : [pid]));
  }

  async createNamespaces(request: Parameters<HostCalls['createNamespaces']>[0]): Promise<void> {
    const { userPath, networkPath, idBase, link } = request;
    await this.#call('createNamespaces', [userPath, networkPath, String(idBase), ...linkWords(link)]);
  }

  async removeNamespaces(userPath: string, networkPath: string): Promise<void> {
    await this.#repeatable('removeNamespaces', [userPath, networkPath]);
  }

  async deleteLink(name: string): Promise<void> {
    await this.#repeatable('deleteLink', [name]);
  }

  async mountOverlay(request: Parameters<HostCalls['mountOverlay']>[0]): Promise<void> {
    const { target, layers, upper, work, userPath, idBase } = request;
    await this.#call('mountOverlay', [target, upper, work, userPath, String(idBase), ...layers]);
  }

  async mountImage(request: Parameters<HostCalls['mountImage']>[0]): Promise<void> {
    const { image, target, fstype, readonly, isVolatile = false } = request;
    await this.#call('mountImage', [image, target, fstype, flag(readonly), flag(isVolatile)]);
  }

  async bind(request: Parameters<HostCalls['bind']>[0]): Promise<{ readonly kind: 'file' | 'directory' }> {
    const { root, path, target, readonly, noexec = false, idmap } = request;
    const fields = [root, path, target, flag(readonly), flag(noexec)];
    if (idmap !== null) fields.push(idmap.userPath, String(idmap.idBase));
    if (idmap?.owner) {
      const { storedAs, uid, gid, quotaMib, statVirtualization, hostPermissions } = idmap.owner;
      fields.push(
        storedAs,
        String(uid),
        String(gid),
        String(quotaMib ?? 0),
        statVirtualization,
        hostPermissions,
      );
    }
    return { kind: (await this.#call('bind', fields)) === 'directory' ? 'directory' : 'file' };
  }

  async unmount(target: string): Promise<void> {
    await this.#repeatable('unmount', [target]);
  }

  async removeMountPoint(target: string, folders: 1 | 2): Promise<void> {
    await this.#repeatable('unmount', [target, String(folders)]);
  }

  async copySparse(from: string, to: string): Promise<void> {
    await this.#call('copySparse', [from, to]);
  }

  async copyFrozen(request: Parameters<HostCalls['copyFrozen']>[0]): Promise<number> {
    const { image, device, mark, to, mostMs } = request;
    return Number(await this.#call('copyFrozen', [image, device, mark, to, String(mostMs)])) / 1000;
  }

  async thaw({ image, device, mark }: FrozenDisk): Promise<void> {
    await this.#repeatable('thaw', [image, device, mark]);
  }

  async writeDirectly(image: string, device: string): Promise<void> {
    await this.#repeatable('writeDirectly', [image, device]);
  }

  async launch(request: LaunchRequest, signal: AbortSignal): Promise<number> {
    const { command, environment, streams, cover = '', claim = '' } = request;
    signal.throwIfAborted();
    const name = String(++this.#launchCount);
    const variables = Object.entries(environment).map(([key, value]) => `${key}=${value}`);
    const helper = this.#idlest();
    // The helper reads the cancellation after the launch itself. A helper that has died answers neither.
    const end = () => void helper.call('endLaunch', [name], false).catch(() => undefined);
    const stopListening = onAbort(signal, end);
    try {
      const how = [streams, cover, claim];
      const fields = [name, ...how, String(variables.length), ...variables, ...command];
      return Number(await helper.call('launch', fields, SLOW_CALLS.has('launch')));
    } finally {
      stopListening();
      signal.throwIfAborted();
    }
  }

  async isClaimed(folder: string): Promise<boolean> {
    return (await this.#repeatable('findClaim', [folder])) === '1';
  }

  async setPrecision(pids: readonly number[], slackNs: number, isInterrupt: boolean): Promise<void> {
    if (pids.length === 0) return;
    const fields = [String(slackNs), flag(isInterrupt), ...pids.map(String)];
    await repeated(1, () => this.#quick.call('setPrecision', fields, false));
  }

  async close(): Promise<void> {
    await Promise.all([...this.#processes, this.#quick].map((process) => process.close()));
  }

  async #call(call: string, fields: readonly string[]): Promise<string> {
    return this.#idlest().call(call, fields, SLOW_CALLS.has(call));
  }

  #idlest(): HostProcess {
    return this.#processes.reduce((best, process) =>
      process.queueLength < best.queueLength ? process : best,
    );
  }

  /** For idempotent calls: they are repeated when a helper dies during them. */
  async #repeatable(call: string, fields: readonly string[]): Promise<string> {
    // Each helper may have died unnoticed; after one failure each they are new.
    return await repeated(this.#processes.length, () => this.#call(call, fields));
  }
}

/** Repeats a call up to this many times when the helper died. */
async function repeated(times: number, call: () => Promise<string>): Promise<string> {
  for (let spare = times; ; spare--) {
    try {
      return await call();
    } catch (error) {
      const isHelperDead = error instanceof HostCallError && error.errno === 'ECHILD';
      if (!isHelperDead || spare === 0) throw error;
    }
  }
}

function flag(value: boolean): string {
  return value ? '1' : '0';
}
