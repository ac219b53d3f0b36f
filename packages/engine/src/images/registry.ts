import { mkdir, readdir, stat, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { PlatformError } from '@svc/contract/errors';
import type { RegistryAuth } from '@svc/contract/orchestrator';
import { outcomeOf, spawnConfined } from './confined-command.ts';
import { hexOf } from './digest.ts';
import { registryFailure, type FailedRequest } from './registry-failure.ts';

export interface RegistrySettings {
  /** `host` or `host:port` of registries that may be asked without TLS or with an unverified certificate. */
  readonly insecure: readonly string[];
  /** `host` or `host:port` of registries in private networks, which are accessed over the host's own network. */
  readonly trusted: readonly string[];
  /**
   * The network for all other registries. References come from callers, names resolve to any address, and a registry may redirect: from
   * this network none of that reaches the host or its networks. Null uses the host's own network.
   */
  readonly publicNetwork: ((signal: AbortSignal) => Promise<PublicNetwork>) | null;
  /** Allows this machine's own addresses, without TLS. References come from callers, who must not reach services on the host. */
  readonly allowHostLocal: boolean;
  /** HTTP_PROXY, HTTPS_PROXY, NO_PROXY. */
  readonly proxy: Readonly<Record<string, string>>;
  /** For one request; the download of layers may take longer. */
  readonly requestTimeoutMs: number;
  /** A download without progress for so long has failed. */
  readonly stallTimeoutMs: number;
}

/** A network namespace that reaches only public addresses. Disposing releases it. */
export interface PublicNetwork extends AsyncDisposable {
  readonly namespace: string;
  readonly nameserver: string;
}

export const DEFAULT_REGISTRY_SETTINGS: RegistrySettings = {
  insecure: [],
  trusted: [],
  publicNetwork: null,
  allowHostLocal: false,
  proxy: {},
  requestTimeoutMs: 60_000,
  stallTimeoutMs: 60_000,
};

interface Blob {
  readonly digest: string;
  readonly size: number;
}

const MAX_DOCUMENT_BYTES = 8 * 1024 * 1024;
const WATCH_INTERVAL_MS = 100;
const WORK = '/pull';
const RESOLV_CONF = 'resolv.conf';

/** The reference, the registry and the network of a request; null is the host's own network. */
export interface RegistryTarget {
  readonly name: string;
  readonly registry: string;
  readonly isInsecure: boolean;
  readonly network: PublicNetwork | null;
}

/**
 * One registry during one pull. skopeo implements the protocol, in namespaces where it has no privileges and sees only the pull's own
 * folder; credentials reach it in a file of that folder, which is removed after the pull.
 */
export class Registry {
  readonly #folder: string;
  readonly #settings: RegistrySettings;
  readonly #target: RegistryTarget;
  readonly #request: FailedRequest;
  readonly #signal: AbortSignal;

  private constructor(
    folder: string,
    settings: RegistrySettings,
    target: RegistryTarget,
    request: FailedRequest,
    signal: AbortSignal,
  ) {
    this.#folder = folder;
    this.#settings = settings;
    this.#target = target;
    this.#request = request;
    this.#signal = signal;
  }

  /** `folder` is empty, private, and removed by the caller. */
  static async open(
    target: RegistryTarget,
    auth: RegistryAuth | null,
    folder: string,
    settings: RegistrySettings,
    signal: AbortSignal,
  ): Promise<Registry> {
    const basic = auth === null ? '' : Buffer.from(`${auth.username}:${auth.password}`).toString('base64');
    const auths = auth === null ? {} : { [target.registry]: { auth: basic } };
    // SAFETY: readable by root alone, in a folder of mode 0700; never an argument, which every user of the host could see.
    await writeFile(join(folder, 'auth.json'), JSON.stringify({ auths }), { mode: 0o600 });
    const secrets = auth === null ? [] : [auth.password, basic];
    const { name, registry, network } = target;
    const isPublicOnly = network !== null;
    if (network !== null) await writeFile(join(folder, RESOLV_CONF), `nameserver ${network.nameserver}\n`);
    const request = { name, registry, hasCredentials: auth !== null, secrets, isPublicOnly };
    return new Registry(folder, settings, target, request, signal);
  }

  /** The manifest (or list of manifests) byte for byte. */
  manifest(source: string): Promise<Buffer> {
    return this.#ask(['inspect', '--raw', ...this.#tls('--tls-verify'), `docker://${source}`]);
  }

  /** The image configuration byte for byte. */
  config(source: string): Promise<Buffer> {
    return this.#ask(['inspect', '--config', '--raw', ...this.#tls('--tls-verify'), `docker://${source}`]);
  }

  /** Fetches `missing`, but none of `present`, and returns the path of each blob. */
  async fetchBlobs(
    source: string,
    missing: readonly Blob[],
    present: readonly Blob[],
    onProgress: (doneBytes: number) => void,
  ): Promise<(digest: string) => string> {
    const blobs = join(this.#folder, 'layout', 'blobs', 'sha256');
    await mkdir(blobs, { recursive: true });
    for (const { digest, size } of present) {
      // skopeo skips blobs that the layout has already. A sparse file of the right size is enough, and takes no disk space.
      await writeFile(join(blobs, hexOf(digest)), '');
      await truncate(join(blobs, hexOf(digest)), size);
    }
    const stop = new AbortController();
    // Without the option skopeo would compress plain layers, which changes their digests.
    const args = [
      'copy',
      '--quiet',
      '--dest-oci-accept-uncompressed-layers',
      ...this.#tls('--src-tls-verify'),
      `docker://${source}`,
      `oci:${WORK}/layout:image`,
    ];
    const copy = this.#run(args, AbortSignal.any([this.#signal, stop.signal])).finally(() => stop.abort());
    const watch = this.#watch(missing, onProgress, stop);
    const [copied] = await Promise.all([copy.catch((error: unknown) => ({ error })), watch]);
    // The error of the watch comes first: it is why the copy was stopped.
    if ('error' in copied) throw copied.error;
    onProgress(missing.reduce((sum, { size }) => sum + size, 0));
    return (digest) => join(blobs, hexOf(digest));
  }

  /** Reports progress by the size of the files, because skopeo reports none. Ends with the copy, or ends the copy. */
  async #watch(
    missing: readonly Blob[],
    onProgress: (doneBytes: number) => void,
    stop: AbortController,
  ): Promise<void> {
    const totalBytes = missing.reduce((sum, { size }) => sum + size, 0);
    let seenBytes = -1;
    let lastGrowth = performance.now();
    while (!stop.signal.aborted && !this.#signal.aborted) {
      const doneBytes = await this.#bytesSoFar(missing);
      if (doneBytes > seenBytes) {
        seenBytes = doneBytes;
        lastGrowth = performance.now();
        onProgress(Math.min(doneBytes, totalBytes));
      }
      // Leaves room for manifests; a registry that sends more than it announced may never stop.
      const failure = doneBytes > totalBytes + MAX_DOCUMENT_BYTES ? 'sent more than it announced' : null;
      const stalled =
        performance.now() - lastGrowth > this.#settings.stallTimeoutMs ? 'stopped sending' : null;
      const why = failure ?? stalled;
      if (why !== null) {
        stop.abort();
        throw new PlatformError(
          'image_pull_failed',
          `Pulling ${this.#request.name} failed: ${this.#request.registry} ${why}`,
        );
      }
      await delay(WATCH_INTERVAL_MS, undefined, { signal: stop.signal }).catch(() => {});
    }
  }

  async #bytesSoFar(missing: readonly Blob[]): Promise<number> {
    const layout = join(this.#folder, 'layout');
    const partial = (await readdir(layout)).filter((name) => name.startsWith('oci-put-blob'));
    const finished = missing.map(({ digest }) => join('blobs', 'sha256', hexOf(digest)));
    let bytes = 0;
    for (const name of [...partial, ...finished]) {
      // A file that was just renamed is counted in the next round.
      bytes += await stat(join(layout, name)).then(
        ({ size }) => size,
        () => 0,
      );
    }
    return bytes;
  }

  #tls(option: string): string[] {
    return this.#target.isInsecure ? [`${option}=false`] : [];
  }

  async #ask(args: readonly string[]): Promise<Buffer> {
    const deadline = AbortSignal.timeout(this.#settings.requestTimeoutMs);
    try {
      return await this.#run(args, AbortSignal.any([this.#signal, deadline]));
    } catch (error) {
      if (!deadline.aborted || this.#signal.aborted) throw error;
      throw registryFailure('i/o timeout', this.#request);
    }
  }

  async #run(args: readonly string[], signal: AbortSignal): Promise<Buffer> {
    const [verb = '', ...rest] = args;
    const { network } = this.#target;
    // SAFETY: no shell, and the reference was parsed and formatted by us, so it cannot be taken for an option.
    const child = spawnConfined({
      command: ['skopeo', '--insecure-policy', verb, '--authfile', `${WORK}/auth.json`, ...rest],
      programs: [],
      folders: [{ host: this.#folder, inside: WORK, writable: true }],
      workdir: WORK,
      capabilities: [],
      ids: 'own',
      network:
        network === null
          ? 'host'
          : { namespace: network.namespace, resolvConf: join(this.#folder, RESOLV_CONF) },
      environment: { ...this.#settings.proxy, HOME: WORK, TMPDIR: WORK },
    });
    const chunks: Buffer[] = [];
    let bytes = 0;
    child.stdout.on('data', (chunk: Buffer) => {
      bytes += chunk.length;
      if (bytes <= MAX_DOCUMENT_BYTES) chunks.push(chunk);
    });
    const { code, stderr } = await outcomeOf(child, signal);
    if (code !== 0) throw registryFailure(stderr, this.#request);
    if (bytes > MAX_DOCUMENT_BYTES)
      throw registryFailure('the registry sent a document that is too large', this.#request);
    return Buffer.concat(chunks);
  }
}
