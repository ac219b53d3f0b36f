import type { SandboxSpec } from '@svc/contract';
import type { ImageConfig } from '@svc/contract/orchestrator';
import type { SlotLink } from '../network/network.ts';

export interface GuestFile {
  readonly path: string;
  readonly data: Uint8Array;
  readonly mode: number;
}

/** Payload of `svc.configure` without the limits: the configuration of every process of the sandbox. */
export interface GuestConfig {
  readonly env: readonly string[];
  readonly user: string | null;
  readonly workdir: string | null;
  readonly shell: string | null;
  readonly files: readonly GuestFile[];
  readonly path_prefix: string;
}

export const SCRIPTS_FOLDER = '/.svc/scripts';

/** Merges the image's configuration with the caller's spec, which takes precedence. */
export function guestConfig(
  spec: SandboxSpec,
  image: ImageConfig,
  host: { readonly hostname: string; readonly link: SlotLink | null },
): GuestConfig {
  return {
    env: envOf(spec, image.env),
    user: spec.runtime?.user ?? image.user,
    workdir: spec.runtime?.workdir ?? image.workdir,
    shell: spec.runtime?.shell ?? null,
    files: networkFiles(host.hostname, host.link),
    path_prefix: SCRIPTS_FOLDER,
  };
}

/** The CA bundle of Debian and Alpine, which most programs read. */
export const TRUST_BUNDLE = '/etc/ssl/certs/ca-certificates.crt';
/** The authority's certificate, in the folder that `update-ca-certificates` reads. */
export const AUTHORITY_FILE = '/usr/local/share/ca-certificates/svc.crt';

/** Variables for programs with a CA bundle of their own. */
const TRUST_ENV = [
  ...['SSL_CERT_FILE', 'REQUESTS_CA_BUNDLE', 'CURL_CA_BUNDLE', 'GIT_SSL_CAINFO', 'PIP_CERT'].map(
    (name) => `${name}=${TRUST_BUNDLE}`,
  ),
  `NODE_EXTRA_CA_CERTS=${AUTHORITY_FILE}`,
];

/** The environment of every process. The caller's values override the image's, which override ours; secrets are represented by placeholders. */
export function envOf({ env, network }: SandboxSpec, image: readonly string[]): string[] {
  const entries = network?.enabled === false ? [] : (network?.secrets?.entries ?? []);
  const isRead = network?.tls?.enabled === true || entries.length > 0 || network?.trust_host_cas === true;
  const placeholders = entries.map(({ env_var: key, placeholder: value }) => ({ key, value }));
  return mergeEnv([...(isRead ? TRUST_ENV : []), ...image], [...(env ?? []), ...placeholders]);
}

/** The caller's values override the image's. */
function mergeEnv(
  image: readonly string[],
  own: readonly { readonly key: string; readonly value: string }[],
): string[] {
  const merged = new Map<string, string>();
  for (const entry of image) {
    const [key = '', ...rest] = entry.split('=');
    merged.set(key, rest.join('='));
  }
  for (const { key, value } of own) merged.set(key, value);
  return [...merged].map(([key, value]) => `${key}=${value}`);
}

function networkFiles(hostname: string, link: SlotLink | null): GuestFile[] {
  const hosts = ['127.0.0.1\tlocalhost', '::1\tlocalhost ip6-localhost ip6-loopback'];
  hosts.push(`${link?.address ?? '127.0.1.1'}\t${hostname}`);
  if (link?.ipv6 !== undefined) hosts.push(`${link.ipv6.address}\t${hostname}`);
  if (link !== null) hosts.push(`${link.gateway}\thost.svc.internal`);
  const resolver = link === null ? '' : `nameserver ${link.nameserver}\noptions timeout:2 attempts:2\n`;
  return [
    file('/etc/hosts', `${hosts.join('\n')}\n`),
    file('/etc/hostname', `${hostname}\n`),
    file('/etc/resolv.conf', resolver),
  ];
}

function file(path: string, text: string): GuestFile {
  return { path, data: Buffer.from(text), mode: 0o644 };
}
