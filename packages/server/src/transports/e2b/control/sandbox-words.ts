import type { RestOutput, RestOperations } from '@svc/contract/rest';
import type { PreviewAddresses } from '../../../handlers/previews/preview-place.ts';
import { toE2bId } from '../wire/e2b-address.ts';
import type { TokenOf } from './control-route.ts';
import { LABEL, metadataOf } from './own-labels.ts';

export type OwnSandbox = RestOutput<RestOperations['sandboxes.get']>;

/** E2B's clients decide by it what they may ask of a sandbox; this one has all of it. */
export const ENVD_VERSION = '0.6.13';
/** Clients require one; nothing reads it. */
const CLIENT_ID = 'svc';
/** Where a sandbox without an end is shown to end. */
const NO_END = '9999-12-31T23:59:59.000Z';

export interface SandboxWordsParts {
  readonly tokenOf: TokenOf;
  /** Null: ports of sandboxes have no addresses. */
  readonly previews: PreviewAddresses | null;
}

/** The answer to a create or connect, with the tokens for what is inside. */
export function toSandbox({ tokenOf, previews }: SandboxWordsParts, sandbox: OwnSandbox) {
  return {
    ...identityOf(sandbox),
    envdAccessToken: tokenOf({ kind: 'envd', id: sandbox.id }),
    trafficAccessToken: tokenOf({ kind: 'traffic', id: sandbox.id }),
    domain: domainOf(previews),
  };
}

export function toListed(sandbox: OwnSandbox) {
  const { resources, labels } = specOf(sandbox);
  return {
    ...identityOf(sandbox),
    startedAt: sandbox.started_at ?? sandbox.created_at,
    endAt: sandbox.ends_at ?? NO_END,
    cpuCount: resources.vcpus,
    memoryMB: resources.memory_mib,
    diskSizeMB: resources.disk_size_mib ?? 0,
    metadata: metadataOf(labels),
    state: 'running',
  };
}

export function toDetail(parts: SandboxWordsParts, sandbox: OwnSandbox, volumes: readonly Mounted[]) {
  return {
    ...toListed(sandbox),
    envdAccessToken: parts.tokenOf({ kind: 'envd', id: sandbox.id }),
    domain: domainOf(parts.previews),
    lifecycle: { autoResume: false, onTimeout: 'kill' },
    allowInternetAccess: allowsInternet(sandbox),
    volumeMounts: volumes.map(({ name, mount_path: path }) => ({ name: name ?? 'default', path })),
  };
}

interface Mounted {
  readonly name: string | null;
  readonly mount_path: string;
}

function identityOf(sandbox: OwnSandbox) {
  const template = templateOf(sandbox);
  return {
    templateID: template,
    alias: template,
    sandboxID: toE2bId(sandbox.id),
    clientID: CLIENT_ID,
    envdVersion: ENVD_VERSION,
  };
}

/** As it was named, or its image. */
export function templateOf(sandbox: OwnSandbox): string {
  const { labels, image } = specOf(sandbox);
  return labels[LABEL.template] ?? image ?? 'snapshot';
}

export function specOf(sandbox: OwnSandbox) {
  const spec = sandbox.spec ?? sandbox.requested;
  if (spec === undefined) throw new Error('a sandbox has a spec');
  return spec;
}

function allowsInternet(sandbox: OwnSandbox): boolean {
  const { policy, enabled } = specOf(sandbox).network;
  return enabled && (policy === null || policy.rules.some(({ action }) => action === 'allow'));
}

/** With the port, because clients put only a label before it. */
function domainOf(previews: PreviewAddresses | null): string | null {
  if (previews === null) return null;
  const port = previews.port();
  const isUsual = port === (previews.scheme === 'https' ? 443 : 80);
  return isUsual ? previews.domain : `${previews.domain}:${port}`;
}
