import type { CreateSandboxOptions } from '@computesdk/provider';
import { SvcError, type ClientOptions, type CreateOptions } from '@svc/sdk';

const DEFAULT_IMAGE = 'python';

/** Of the provider. Address and key come from `SVC_API_URL` and `SVC_API_KEY` unless given. */
export interface SvcConfig extends ClientOptions {
  /** Of sandboxes that name none; `python` unless given. */
  readonly image?: string;
}

/** By which sandboxes of ComputeSDK are found again. */
export const LABELS = { 'made-by': 'computesdk' } as const;

/** Names of ComputeSDK for what svc has too; each value of ComputeSDK is in the unit of svc. */
const SAME = {
  name: 'name',
  snapshotId: 'snapshotId',
  envs: 'env',
  directory: 'workdir',
  vcpus: 'vcpus',
  cpus: 'vcpus',
  memoryMiB: 'memoryMib',
  memMiB: 'memoryMib',
  diskMiB: 'diskMib',
} as const satisfies Record<string, keyof CreateOptions>;

const OTHERS = ['timeout', 'image', 'templateId', 'runtime', 'metadata', 'signal', 'provider', 'svc'];

/** @throws SvcError `invalid_request` for an option that svc has no meaning for */
export function toCreateOptions(
  { image = DEFAULT_IMAGE }: SvcConfig,
  options: CreateSandboxOptions,
): CreateOptions {
  const given = Object.entries(options).filter(([, value]) => value !== undefined);
  for (const [name] of given) requireKnown(name);
  const same = given.flatMap(([name, value]) => (isSame(name) ? [[SAME[name], value]] : []));
  // `requireKnown` has let through only names of SAME with values of the types of ComputeSDK; `svc` is typed as the caller's own.
  const { labels, ...own } = (options['svc'] ?? {}) as CreateOptions;
  const source = options.snapshotId === undefined ? { image: imageOf(options) ?? image } : {};
  return {
    ...source,
    ...(Object.fromEntries(same) as CreateOptions),
    ...(options.timeout === undefined ? {} : { maxDurationSeconds: Math.ceil(options.timeout / 1000) }),
    // One with a name would be kept when it stops.
    isEphemeral: true,
    ...own,
    labels: { ...labelsOf(options.metadata), ...labels, ...LABELS },
  };
}

function imageOf({ image, templateId, runtime }: CreateSandboxOptions): string | undefined {
  return image ?? templateId ?? runtime;
}

function isSame(name: string): name is keyof typeof SAME {
  return Object.hasOwn(SAME, name);
}

function requireKnown(name: string): void {
  if (isSame(name) || OTHERS.includes(name)) return;
  const known = [...Object.keys(SAME), ...OTHERS].toSorted().join(', ');
  const message = `svc has no option '${name}': leave it out, or give what Sandbox.create takes as 'svc'; known are ${known}`;
  throw new SvcError('invalid_request', message, { details: { field: name } });
}

function labelsOf(metadata: CreateSandboxOptions['metadata'] = {}): Record<string, string> {
  const entries = Object.entries(metadata).filter(([, value]) => value !== undefined);
  return Object.fromEntries(
    entries.map(([name, value]) => [name, typeof value === 'string' ? value : JSON.stringify(value)]),
  );
}
