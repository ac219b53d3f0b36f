import { parseBoundedJson } from '@svc/contract/bounded-json';
import { PlatformError } from '@svc/contract/errors';
import type { ImageConfig } from '@svc/contract/orchestrator';
import { Type, type Static, type TSchema } from 'typebox';
import { Value } from 'typebox/value';
import { checkDigest, digestOf } from './digest.ts';
import { refused } from './image-failures.ts';
import type { ImageLimits } from './image-limits.ts';

// https://github.com/opencontainers/image-spec (manifest.md, image-index.md, config.md); Docker's schema 2 has the same fields.

const Digest = Type.String({ pattern: '^sha256:[0-9a-f]{64}$' });
const Size = Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER });
const Annotations = Type.Optional(Type.Union([Type.Record(Type.String(), Type.String()), Type.Null()]));
const Strings = Type.Optional(
  Type.Union([Type.Array(Type.String({ maxLength: 65_536 }), { maxItems: 4096 }), Type.Null()]),
);
const Text = Type.Optional(Type.Union([Type.String({ maxLength: 65_536 }), Type.Null()]));

const Descriptor = Type.Object({ mediaType: Type.Optional(Type.String()), digest: Digest, size: Size });

const Manifest = Type.Object({
  schemaVersion: Type.Literal(2),
  config: Descriptor,
  layers: Type.Array(Descriptor, { maxItems: 10_000 }),
});
export type Manifest = Static<typeof Manifest>;

const ManifestList = Type.Object({
  schemaVersion: Type.Literal(2),
  manifests: Type.Array(
    Type.Object({
      mediaType: Type.Optional(Type.String()),
      digest: Digest,
      size: Size,
      annotations: Annotations,
      platform: Type.Optional(
        Type.Union([
          Type.Object({ architecture: Type.String(), os: Type.String(), variant: Text }),
          Type.Null(),
        ]),
      ),
    }),
    { maxItems: 1000 },
  ),
});
export type ManifestList = Static<typeof ManifestList>;

const ConfigDocument = Type.Object({
  architecture: Text,
  os: Text,
  created: Text,
  rootfs: Type.Object({ diff_ids: Type.Array(Digest, { maxItems: 10_000 }) }),
  config: Type.Optional(
    Type.Union([
      Type.Object({
        Entrypoint: Strings,
        Cmd: Strings,
        Env: Strings,
        WorkingDir: Text,
        User: Text,
        StopSignal: Text,
        Labels: Type.Optional(Type.Union([Type.Record(Type.String(), Type.String()), Type.Null()])),
      }),
      Type.Null(),
    ]),
  ),
});

export interface ParsedConfig {
  /** `sha256:…` of the document: the image's id. */
  readonly id: string;
  readonly diffIds: readonly string[];
  readonly architecture: string;
  readonly createdAt: string | null;
  readonly config: ImageConfig;
}

export function parseManifestOrList(bytes: Buffer): Manifest | ManifestList {
  const document = parseJson('manifest', bytes);
  if (Value.Check(ManifestList, document)) return document;
  if (Value.Check(Manifest, document)) return document;
  const isOld =
    typeof document === 'object' &&
    document !== null &&
    'schemaVersion' in document &&
    document.schemaVersion === 1;
  throw refused(
    isOld
      ? 'its manifest has the outdated schema 1; push it again with a current tool'
      : 'its manifest is not one this program knows',
  );
}

export function parseConfig(bytes: Buffer): ParsedConfig {
  const document = checked(ConfigDocument, 'configuration', bytes);
  if (document.os !== undefined && document.os !== null && !['linux', ''].includes(document.os)) {
    throw refused(`it is made for ${document.os}, not for linux`);
  }
  const config = document.config ?? {};
  return {
    id: digestOf(bytes),
    diffIds: document.rootfs.diff_ids,
    architecture: document.architecture ?? '',
    createdAt: isoTime(document.created),
    config: {
      entrypoint: config.Entrypoint ?? [],
      cmd: config.Cmd ?? [],
      env: config.Env ?? [],
      workdir: config.WorkingDir || null,
      user: config.User || null,
      labels: config.Labels ?? {},
      stopSignal: config.StopSignal || null,
    },
  };
}

/** Chooses the manifest for this host from a list. */
export function chooseManifest(list: ManifestList, architecture: string): ManifestList['manifests'][number] {
  const chosen = list.manifests.find(
    ({ platform }) =>
      platform === undefined ||
      platform === null ||
      (platform.os === 'linux' && platform.architecture === architecture),
  );
  if (chosen !== undefined) return chosen;
  const offered = list.manifests.map(({ platform }) => `${platform?.os}/${platform?.architecture}`);
  throw refused(
    `it exists for ${[...new Set(offered)].slice(0, 10).join(', ') || 'nothing'}, not for linux/${architecture}`,
  );
}

/** Checks that manifest and configuration agree and are within the limits, before any layer is fetched. */
export function checkImage(
  manifest: Manifest,
  config: ParsedConfig,
  limits: ImageLimits,
  architecture: string,
): void {
  checkDigest('configuration', manifest.config.digest, config.id);
  checkArchitecture(config, architecture);
  if (manifest.layers.length !== config.diffIds.length)
    throw refused('its manifest and its configuration list different layers');
  checkLayerCount(config, limits);
  const foreign = manifest.layers.find(
    ({ mediaType }) => mediaType?.includes('foreign') || mediaType?.includes('encrypted'),
  );
  if (foreign !== undefined) throw refused(`it has a layer of the type ${foreign.mediaType}`);
  const bytes = manifest.layers.reduce((sum, { size }) => sum + size, 0);
  if (bytes > limits.maxDownloadBytes)
    throw refused(`its layers are larger than ${limits.maxDownloadBytes} bytes`);
}

export function checkArchitecture(config: ParsedConfig, architecture: string): void {
  if (config.architecture === '' || config.architecture === architecture) return;
  throw refused(`it is made for ${config.architecture}; this host is ${architecture}`);
}

export function checkLayerCount(config: ParsedConfig, limits: ImageLimits): void {
  if (config.diffIds.length > limits.maxLayers) throw refused(`it has more than ${limits.maxLayers} layers`);
  if (config.diffIds.length === 0) throw refused('it has no layers');
}

function checked<T extends TSchema>(schema: T, what: string, bytes: Buffer): Static<T> {
  const document = parseJson(what, bytes);
  if (Value.Check(schema, document)) return document;
  const [first] = Value.Errors(schema, document);
  throw refused(
    `its ${what} is malformed at ${first?.instancePath || 'the top'}: ${first?.message ?? 'unknown field'}`,
  );
}

function parseJson(what: string, bytes: Buffer): unknown {
  try {
    return parseBoundedJson(bytes);
  } catch (error) {
    throw refused(`its ${what} is ${PlatformError.is(error) ? 'too large' : 'not JSON'}`, error);
  }
}

function isoTime(value: string | null | undefined): string | null {
  const time = Date.parse(value ?? '');
  return Number.isNaN(time) ? null : new Date(time).toISOString();
}
