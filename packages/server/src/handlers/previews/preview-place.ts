/** Name of the parameter and of the cookie that carry a token. */
export const TOKEN_NAME = 'svc_preview_token';

/** Where browsers find previews: `<scheme>://<port>-<slug>.<domain>`. */
export interface PreviewPlace {
  readonly domain: string;
  /** The scheme that browsers use, which may be that of the operator's proxy. */
  readonly scheme: 'http' | 'https';
  /** The port that browsers connect to; null: the one that the server listens on. */
  readonly port: number | null;
}

/** The same with the port that browsers connect to. */
export interface PreviewAddresses {
  readonly domain: string;
  readonly scheme: 'http' | 'https';
  /** Known once the server listens. */
  readonly port: () => number;
  /** No token is needed from this machine: the server runs in development mode, and its previews are below `localhost`. */
  readonly isOpen: boolean;
}

export interface PreviewHost {
  readonly port: number;
  readonly slug: string;
}

const LABEL = /^([1-9]\d{0,4})-([a-z0-9]+(?:-[a-z0-9]+)*)$/;
const MAX_PORT = 65_535;
/** Limit of a DNS label. */
export const MAX_LABEL_LENGTH = 63;
const DEFAULT_PORTS = { http: 80, https: 443 } as const;

/** The port and sandbox of a Host header; undefined when it is not a host of a preview. */
export function readPreviewHost(
  { domain }: Pick<PreviewPlace, 'domain'>,
  hostHeader: string | undefined,
): PreviewHost | undefined {
  const host = (hostHeader ?? '')
    .toLowerCase()
    .replace(/:\d{1,5}$/, '')
    .replace(/\.$/, '');
  if (!host.endsWith(`.${domain}`)) return undefined;
  const [, port, slug] = LABEL.exec(host.slice(0, -domain.length - 1)) ?? [];
  if (port === undefined || slug === undefined || Number(port) > MAX_PORT) return undefined;
  return { port: Number(port), slug };
}

/** Names below it resolve to the browser's own machine (RFC 6761, 6.3) and cannot be redirected elsewhere. */
export function isBelowLocalhost(domain: string): boolean {
  return domain === 'localhost' || domain.endsWith('.localhost');
}

/** Whether a name can take the place of a slug. */
export function isLabel(port: number, name: string): boolean {
  const label = `${port}-${name}`;
  return LABEL.test(label) && label.length <= MAX_LABEL_LENGTH;
}

export function previewUrl(place: Omit<PreviewAddresses, 'isOpen'>, { port, slug }: PreviewHost): string {
  const browserPort = place.port();
  const suffix = browserPort === DEFAULT_PORTS[place.scheme] ? '' : `:${browserPort}`;
  return `${place.scheme}://${port}-${slug}.${place.domain}${suffix}/`;
}
