/** Where browsers find previews: `<scheme>://<port>-<slug>.<domain>`. */
export interface PreviewPlace {
  readonly domain: string;
  /** What browsers speak, which may be to a proxy of the operator. */
  readonly scheme: 'http' | 'https';
  /** That browsers connect to; null: the one that the server listens on. */
  readonly port: number | null;
}

/** The same with the port that browsers connect to. */
export interface PreviewAddresses {
  readonly domain: string;
  readonly scheme: 'http' | 'https';
  /** Known while the server listens. */
  readonly port: () => number;
}

export interface PreviewHost {
  readonly port: number;
  readonly slug: string;
}

const LABEL = /^([1-9]\d{0,4})-([a-z0-9]+(?:-[a-z0-9]+)*)$/;
const MAX_PORT = 65_535;
const DEFAULT_PORTS = { http: 80, https: 443 } as const;

/** Which port of which sandbox a Host header means; undefined: it is no host of a preview. */
export function readPreviewHost(
  { domain }: PreviewPlace,
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

export function previewUrl(place: PreviewAddresses, { port, slug }: PreviewHost): string {
  const browserPort = place.port();
  const suffix = browserPort === DEFAULT_PORTS[place.scheme] ? '' : `:${browserPort}`;
  return `${place.scheme}://${port}-${slug}.${place.domain}${suffix}/`;
}
