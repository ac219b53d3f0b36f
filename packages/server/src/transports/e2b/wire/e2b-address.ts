import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';

/**
 * What a request of E2B's clients is for: the control plane, or one of the two services that their sandboxes have inside, `envd`
 * for processes and files and `code` for the code interpreter. Here all three are answered by the server.
 */
export type E2bSurface = 'control' | 'envd' | 'code';

/** Paths of E2B are moved below this one, so that they collide with none of ours. */
export const E2B_PREFIX = '/e2b';
export const SANDBOX_HEADER = 'e2b-sandbox-id';

const PORT_HEADER = 'e2b-sandbox-port';
const CODE_PORT = '49999';
const SURFACE_OF_PORT: Readonly<Record<string, E2bSurface>> = { 49983: 'envd', [CODE_PORT]: 'code' };

const HOST_LABEL = /^(49983|49999)-([0-9a-f]{32})$/;
const ID = /^[0-9a-f]{32}$/;
/** Paths that only E2B has. */
const ENVD_PATH = /^\/(?:process\.Process|filesystem\.Filesystem)\//;
const SANDBOX_PATH = /^\/(?:files|health|execute|contexts(?:\/.*)?)$/;
const CONTROL_PATH = /^\/(?:v[23]\/)?(?:sandboxes|snapshots|templates|volumes|secrets|teams)(?:\/|$)/;
const VOLUME_CONTENT_PATH = /^\/volumecontent\//;

/** E2B's clients put the id into labels of hosts, which are split at hyphens. */
export function toE2bId(sandboxId: string): string {
  return sandboxId.replaceAll('-', '');
}

/** The id of a sandbox; undefined when the text cannot be one. */
export function fromE2bId(text: string | undefined): string | undefined {
  if (text === undefined || !ID.test(text)) return undefined;
  return text.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
}

/**
 * The path of a request: of one of E2B's clients that below `E2B_PREFIX` where it is answered, of others their own. The sandbox in the
 * name of a host goes into the header that names it elsewhere.
 */
export function rewriteUrl(
  domain: string | null,
  { url = '/', headers }: Pick<IncomingMessage, 'url' | 'headers'>,
): string {
  const place = placeOfHost(domain, headers.host) ?? placeOfRequest(url, headers);
  if (place === undefined) return url;
  if (place.sandbox !== undefined) headers[SANDBOX_HEADER] = place.sandbox;
  return `${E2B_PREFIX}/${place.surface}${url}`;
}

/** Whether E2B's clients use this host: it is no host of a preview, and a name of this server. */
export function isE2bHost(domain: string | null, host: string | undefined): boolean {
  return placeOfHost(domain, host) !== undefined;
}

interface Place {
  readonly surface: E2bSurface;
  readonly sandbox?: string;
}

function placeOfHost(domain: string | null, hostHeader: string | undefined): Place | undefined {
  if (domain === null) return undefined;
  const host = (hostHeader ?? '').toLowerCase().replace(/:\d{1,5}$/, '');
  if (!host.endsWith(`.${domain}`)) return undefined;
  const label = host.slice(0, -domain.length - 1);
  if (label === 'api') return { surface: 'control' };
  const [, port = '', sandbox] = HOST_LABEL.exec(label) ?? [];
  const surface = SURFACE_OF_PORT[port];
  return surface === undefined || sandbox === undefined ? undefined : { surface, sandbox };
}

function placeOfRequest(url: string, headers: IncomingHttpHeaders): Place | undefined {
  const path = url.replace(/\?.*$/, '');
  if (VOLUME_CONTENT_PATH.test(path)) return { surface: 'control' };
  if (ENVD_PATH.test(path)) return { surface: 'envd' };
  if (headers[SANDBOX_HEADER] !== undefined && SANDBOX_PATH.test(path))
    return { surface: headers[PORT_HEADER] === CODE_PORT ? 'code' : 'envd' };
  // A signed link carries no header.
  if (path === '/files' && /[?&]signature=/.test(url)) return { surface: 'envd' };
  return headers['x-api-key'] !== undefined && CONTROL_PATH.test(path) ? { surface: 'control' } : undefined;
}
