import { statfs } from 'node:fs/promises';
import { PlatformError } from '@svc/contract/errors';
import { parseReference, type Reference } from '@svc/contract/image-reference';
import type { RegistryAuth } from '@svc/contract/orchestrator';
import { addImage, holdAndName, type AddOptions } from './add-image.ts';
import { checkDigest, digestOf } from './digest.ts';
import { hostArchitecture } from './host-architecture.ts';
import { coversAudience } from './image-access.ts';
import { refused } from './image-failures.ts';
import type { ImageRecord } from './image-records.ts';
import type { LayerArchive } from './layer-archive.ts';
import {
  checkImage,
  chooseManifest,
  parseConfig,
  parseManifestOrList,
  type Manifest,
  type ParsedConfig,
} from './oci-documents.ts';
import { formatReference, isHostLocal, isPrivateAddress, nameOf } from './reference.ts';
import {
  DEFAULT_REGISTRY_SETTINGS,
  Registry,
  type PublicNetwork,
  type RegistrySettings,
} from './registry.ts';
import type { Staging } from './staging.ts';

interface RemoteImage {
  /** `registry/repository@sha256:…` of the manifest for this host, which is immutable. */
  readonly source: string;
  readonly digest: string;
  readonly manifestDigest: string;
  readonly manifest: Manifest;
  readonly config: ParsedConfig;
}

/** Pulls images from registries. Callers make sure that one reference is pulled once at a time. */
export class ImagePuller {
  readonly #staging: Staging;
  readonly #settings: RegistrySettings;

  constructor(staging: Staging, settings: Partial<RegistrySettings>) {
    this.#staging = staging;
    this.#settings = { ...DEFAULT_REGISTRY_SETTINGS, ...settings };
  }

  /** Resolves the reference at the registry and fetches only the layers that this host lacks. */
  async pull(reference: Reference, auth: RegistryAuth | null, options: AddOptions): Promise<ImageRecord> {
    const name = formatReference(reference);
    await using staged = await this.#staging.create();
    const { registry: host, isInsecure, isTrusted } = this.#target(reference);
    await using network = isTrusted ? null : await this.#publicNetwork(options.signal);
    const target = { name, registry: host, isInsecure, network };
    const registry = await Registry.open(target, auth, staged.path, this.#settings, options.signal);
    const top = await registry.manifest(name);
    const digest = digestOf(top);
    if (reference.digest !== null) checkDigest('manifest', reference.digest, digest);
    const known = findKnown(reference, digest, options);
    if (known !== undefined) return await holdAndName({ ...known, reference: name }, options);
    const remote = await describe(registry, reference, top);
    checkImage(remote.manifest, remote.config, options.limits, hostArchitecture());
    return await fetchImage(registry, remote, name, staged.path, options);
  }

  async #publicNetwork(signal: AbortSignal): Promise<PublicNetwork | null> {
    // A proxy connects for us, and may itself have a private address.
    const hasProxy = Object.keys(this.#settings.proxy).some((name) => /^https?_proxy$/i.test(name));
    return hasProxy ? null : ((await this.#settings.publicNetwork?.(signal)) ?? null);
  }

  #target(reference: Reference): { registry: string; isInsecure: boolean; isTrusted: boolean } {
    const registry = reference.registry ?? '';
    const isListed = this.#settings.insecure.includes(registry);
    const isLocal = isHostLocal(registry);
    const isTrusted = isListed || this.#settings.trusted.includes(registry);
    if (!isLocal && !isTrusted && isPrivateAddress(registry)) {
      throw new PlatformError(
        'invalid_image',
        `${registry} is an address of a private network; its operator can allow it with \`svc engine start --trusted-registry ${registry}\``,
        { details: { registry } },
      );
    }
    if (isLocal && !isTrusted && !this.#settings.allowHostLocal) {
      throw new PlatformError(
        'invalid_image',
        `${registry} is an address of the host itself; allow it in the list of insecure registries to pull from it`,
        { details: { registry } },
      );
    }
    return {
      registry,
      isInsecure: isListed || (isLocal && this.#settings.allowHostLocal),
      isTrusted,
    };
  }
}

/**
 * The image with this digest, when the caller may have it without supplying its layers: it holds the image already, or the registry and
 * repository that the image came from has just served the same manifest to this caller. Any other registry can serve a manifest without
 * having the layers.
 */
function findKnown(reference: Reference, digest: string, options: AddOptions): ImageRecord | undefined {
  const isSameSource = (record: ImageRecord) =>
    record.reference !== null && nameOf(parseReference(record.reference)) === nameOf(reference);
  return options.records
    .all()
    .find(
      (record) =>
        record.digest === digest && (coversAudience(record.scopes, options.proof) || isSameSource(record)),
    );
}

async function describe(registry: Registry, reference: Reference, top: Buffer): Promise<RemoteImage> {
  const digest = digestOf(top);
  const document = parseManifestOrList(top);
  if (!('manifests' in document)) {
    const source = `${nameOf(reference)}@${digest}`;
    const config = parseConfig(await registry.config(source));
    return { source, digest, manifestDigest: digest, manifest: document, config };
  }
  const chosen = chooseManifest(document, hostArchitecture());
  const source = `${nameOf(reference)}@${chosen.digest}`;
  const [bytes, config] = await Promise.all([registry.manifest(source), registry.config(source)]);
  checkDigest('manifest', chosen.digest, digestOf(bytes));
  const manifest = parseManifestOrList(bytes);
  if ('manifests' in manifest) throw refused('its list of manifests leads to another list');
  return { source, digest, manifestDigest: chosen.digest, manifest, config: parseConfig(config) };
}

async function fetchImage(
  registry: Registry,
  remote: RemoteImage,
  name: string,
  folder: string,
  options: AddOptions,
): Promise<ImageRecord> {
  const { config, manifest } = remote;
  // Held before checking which layers are present: layers that are not fetched must not be removed meanwhile.
  using _ = options.layers.hold(config.diffIds);
  const proven = options.records.provenLayers(options.proof);
  const isPresent = (index: number) => {
    const diffId = config.diffIds[index] ?? '';
    return proven.has(diffId) && options.layers.get(diffId) !== undefined;
  };
  const missing = manifest.layers.filter((_layer, index) => !isPresent(index));
  const present = manifest.layers.filter((_layer, index) => isPresent(index));
  let blobPath: (digest: string) => string = () => '';
  if (missing.length > 0) {
    const totalBytes = missing.reduce((sum, { size }) => sum + size, 0);
    await checkRoom(folder, totalBytes + options.limits.minFreeBytes);
    blobPath = await registry.fetchBlobs(remote.source, missing, present, (doneBytes) => {
      options.onProgress({ step: 'downloading', doneBytes, totalBytes });
    });
  }
  const archive = (index: number): LayerArchive => {
    const digest = manifest.layers[index]?.digest ?? '';
    return { type: 'file', path: blobPath(digest), digest };
  };
  return await addImage(
    name,
    { config, digest: remote.digest, manifestDigest: remote.manifestDigest, archive, proven },
    options,
  );
}

async function checkRoom(folder: string, bytes: number): Promise<void> {
  const { bavail, bsize } = await statfs(folder);
  if (bavail * bsize >= bytes) return;
  throw new PlatformError(
    'insufficient_storage',
    `The image needs ${bytes} bytes; free space with \`svc image prune\` and try again`,
  );
}
