import { isIP } from 'node:net';
import type { PreviewPlace } from './handlers/previews/preview-place.ts';
import { isLoopback } from './transports/http/loopback.ts';
import { DEFAULT_SSH_SETTINGS, type SshSettings } from './transports/ssh/ssh-settings.ts';

const DOMAIN = /^(?=.{1,190}$)[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*$/;
const NO_PREVIEWS = 'off';
const MAX_PORT = 65_535;
const MAX_IDLE_SECONDS = 30 * 24 * 60 * 60;

/** Null: no SSH. */
export function readSsh(
  values: { readonly 'ssh-port'?: string | undefined; readonly 'ssh-idle-timeout'?: string | undefined },
  host: string,
  problems: string[],
): SshSettings | null {
  const { 'ssh-port': portText, 'ssh-idle-timeout': idleText } = values;
  const idleSeconds = Number(idleText ?? DEFAULT_SSH_SETTINGS.inactivityMs / 1000);
  if (!Number.isInteger(idleSeconds) || idleSeconds < 0 || idleSeconds > MAX_IDLE_SECONDS) {
    problems.push(
      `--ssh-idle-timeout must be whole seconds up to ${MAX_IDLE_SECONDS}, or 0 for none, not ${idleText}`,
    );
  }
  if (portText === undefined) return null;
  const port = /^\d{1,5}$/.test(portText) ? Number(portText) : Number.NaN;
  if (!(port <= MAX_PORT))
    problems.push(`--ssh-port must be a whole number up to ${MAX_PORT}, not ${portText}`);
  return { ...DEFAULT_SSH_SETTINGS, host, port, inactivityMs: idleSeconds * 1000 };
}

/** Place of previews for a server that is reachable from its own machine only. */
const LOCAL_PLACE: PreviewPlace = { domain: 'localhost', scheme: 'http', port: null };

/**
 * A domain, or its URL when browsers reach it over TLS or on another port than the server's. The default, names below `localhost`, is
 * used for a server that is reachable from its own machine only: neither directly from elsewhere nor through a proxy, which needs a
 * name.
 */
export function readPreviewPlace(
  values: {
    readonly 'preview-domain'?: string | undefined;
    readonly 'allowed-host'?: readonly string[] | undefined;
  },
  host: string,
  problems: string[],
): PreviewPlace | null {
  const { 'preview-domain': text, 'allowed-host': names = [] } = values;
  if (text === undefined) return isLoopback(host) && names.length === 0 ? LOCAL_PLACE : null;
  if (text === NO_PREVIEWS) return null;
  const hasScheme = /^https?:\/\//.test(text);
  const url = URL.canParse(hasScheme ? text : `http://${text}`)
    ? new URL(hasScheme ? text : `http://${text}`)
    : null;
  const domain = url?.hostname.replace(/\.$/, '') ?? '';
  const isPlain =
    url !== null && url.pathname === '/' && url.search === '' && url.hash === '' && url.username === '';
  if (!isPlain || !DOMAIN.test(domain) || isIP(domain) !== 0) {
    problems.push(
      `--preview-domain must be like preview.example.com or https://preview.example.com, not ${text}`,
    );
    return null;
  }
  const taken = [host, ...names].find((name) => name.toLowerCase().endsWith(`.${domain}`));
  if (taken !== undefined) {
    // A page of a sandbox could set cookies for the name of the API.
    problems.push(`--preview-domain ${domain} must not be above the server's own name ${taken}`);
  }
  const scheme = url.protocol === 'https:' ? 'https' : 'http';
  const defaultPort = hasScheme ? (scheme === 'https' ? 443 : 80) : null;
  return { domain, scheme, port: url.port === '' ? defaultPort : Number(url.port) };
}

/** Where ports of sandboxes are shown, and to whom. */
export function readShownPorts(
  values: Parameters<typeof readPreviewPlace>[0] & { readonly 'e2b-ports'?: string | undefined },
  host: string,
  problems: string[],
) {
  return {
    previews: readPreviewPlace(values, host, problems),
    areE2bPortsPublic: readE2bPorts(values['e2b-ports'], problems),
  };
}

const E2B_PORTS = ['public', 'token'];

/** Whether they are public. */
function readE2bPorts(text: string | undefined, problems: string[]): boolean {
  if (text !== undefined && !E2B_PORTS.includes(text))
    problems.push(`--e2b-ports must be one of ${E2B_PORTS.join(', ')}, not ${text}`);
  return text !== 'token';
}

export function readPublishAddresses(addresses: readonly string[], problems: string[]): readonly string[] {
  for (const address of addresses) {
    if (isIP(address) === 0) problems.push(`--publish-address must be an IP address, not ${address}`);
  }
  return addresses;
}
