import type { IncomingHttpHeaders } from 'node:http';
import { isIP } from 'node:net';
import { PlatformError } from '@svc/contract';
import { isForeignPage } from './foreign-page.ts';
import { isLoopback } from './loopback.ts';

export interface GuardOptions {
  /** The listen address or name of the server. */
  readonly host: string;
  /** Further names of this server. */
  readonly allowedHosts: readonly string[];
  /** Origins of pages that may call the server from a browser. */
  readonly corsOrigins: readonly string[];
  /** Names of this server that follow a pattern, as they are in `Host`. */
  readonly isFurtherHost?: (host: string) => boolean;
}

/**
 * Decides whether a request is admitted. Prevents a page in a browser from controlling a server on loopback, directly
 * (Origin; Sec-Fetch-Site for elements) or by DNS rebinding (Host).
 */
export class Guard {
  readonly #hosts: ReadonlySet<string>;
  readonly #corsOrigins: ReadonlySet<string>;
  readonly #takesAnyAddress: boolean;
  readonly #isFurtherHost: (host: string) => boolean;

  constructor({ host, allowedHosts, corsOrigins, isFurtherHost = () => false }: GuardOptions) {
    this.#isFurtherHost = isFurtherHost;
    this.#hosts = new Set(['localhost', host, ...allowedHosts].map(normalize));
    this.#corsOrigins = new Set(corsOrigins);
    // With rebinding, Host is a name, never an address, so an address is safe.
    this.#takesAnyAddress = host === '0.0.0.0' || host === '::';
  }

  /** @throws PlatformError `forbidden` */
  check(headers: IncomingHttpHeaders): void {
    this.checkHost(headers);
    const { host = '', origin } = headers;
    if (origin === undefined && isForeignPage(headers)) {
      const hint =
        'A page elsewhere may not load this; open it in a tab, or call it by a script of a --cors-origin';
      throw new PlatformError('forbidden', hint, { details: { field: 'sec-fetch-site' } });
    }
    if (origin === undefined || this.allowsCors(origin) || isOwnOrigin(origin, host)) return;
    const hint = `Origin '${origin}' may not call this server; add it with --cors-origin`;
    throw new PlatformError('forbidden', hint, { details: { origin } });
  }

  /** For what pages of every origin may use. @throws PlatformError `forbidden` */
  checkHost({ host = '' }: IncomingHttpHeaders): void {
    if (this.#isOurHost(hostnameOf(host)) || this.#isFurtherHost(host)) return;
    const hint = `Host '${host}' is not a name of this server; add it with --allowed-host`;
    throw new PlatformError('forbidden', hint, { details: { host } });
  }

  allowsCors(origin: string): boolean {
    return this.#corsOrigins.has(origin);
  }

  #isOurHost(hostname: string): boolean {
    if (this.#hosts.has(hostname) || isLoopback(hostname)) return true;
    return this.#takesAnyAddress && isIP(hostname) !== 0;
  }
}

function isOwnOrigin(origin: string, host: string): boolean {
  return origin === `http://${host}` || origin === `https://${host}`;
}

/** `name:port`, `[::1]:port` or without the port. */
function hostnameOf(host: string): string {
  const match = /^(?:\[([0-9a-f:.]+)\]|([^:[\]]+))(?::\d{1,5})?$/i.exec(host);
  return normalize(match?.[1] ?? match?.[2] ?? '');
}

function normalize(host: string): string {
  return host
    .toLowerCase()
    .replace(/^\[|\]$/g, '')
    .replace(/\.$/, '');
}
