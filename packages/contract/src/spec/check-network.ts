import type { Network } from './network.ts';
import { MAX_PLACEHOLDER_BYTES, type HostPattern, type SecretEntry, type Secrets } from './secrets.ts';

type Refuse = (field: string, reason: string) => Error;
type Env = readonly { readonly key: string }[];

/** The rules of a network that its schema cannot express. `refuse` makes the error that names the field. */
export function checkNetwork(network: Network | undefined, env: Env, refuse: Refuse): void {
  const { secrets, tls } = network ?? {};
  checkEntries(secrets?.entries ?? [], env, refuse);
  checkAction(secrets ?? {}, 'network.secrets', refuse);
  const patterns = {
    bypass: tls?.bypass ?? [],
    scoped_verify_upstream: (tls?.scoped_verify_upstream ?? []).map(({ pattern }) => pattern),
    scoped_upstream_ca_cert: (tls?.scoped_upstream_ca_cert ?? []).map(({ pattern }) => pattern),
  };
  for (const [list, texts] of Object.entries(patterns))
    for (const [index, text] of texts.entries()) {
      const field = `network.tls.${list}[${index}]${list === 'bypass' ? '' : '.pattern'}`;
      if (!isHostName(text.replace(/^\*\./, ''))) throw refuse(field, PATTERN_HINT);
    }
  const { cert_path: certificate = null, key_path: key = null } = tls?.intercept_ca ?? {};
  if ((certificate === null) !== (key === null))
    throw refuse('network.tls.intercept_ca', 'cert_path and key_path go together; send both or none');
}

const PATTERN_HINT = 'must be a name such as example.com, or *.example.com for it and all below it';

const PLAIN_HINT =
  'must not contain a percent sign, a backslash, a control character or half a character: escapes begin with them; use for instance letters, digits and $ _ -';

function checkEntries(entries: readonly SecretEntry[], env: Env, refuse: Refuse): void {
  const seen = { env_var: new Set(env.map(({ key }) => key)), placeholder: new Set<string>() };
  for (const [index, entry] of entries.entries()) {
    const field = `network.secrets.entries[${index}]`;
    for (const name of ['env_var', 'placeholder'] as const) {
      if (seen[name].has(entry[name]))
        throw refuse(`${field}.${name}`, 'is given twice in env and secrets; keep one');
      seen[name].add(entry[name]);
    }
    if (new TextEncoder().encode(entry.placeholder).length > MAX_PLACEHOLDER_BYTES)
      throw refuse(`${field}.placeholder`, `must have at most ${MAX_PLACEHOLDER_BYTES} bytes`);
    if (!isPlain(entry.placeholder)) throw refuse(`${field}.placeholder`, PLAIN_HINT);
    if (entry.allowed_hosts.length === 0)
      throw refuse(`${field}.allowed_hosts`, 'must name at least one host that may be sent the value');
    checkHosts(entry.allowed_hosts, `${field}.allowed_hosts`, refuse);
    checkAction(entry, field, refuse);
    checkSubstitution(entry, `${field}.substitution`, refuse);
  }
}

/** Requests are searched for a placeholder as it is and in its escaped forms; one that looks like an escape would have several readings. */
function isPlain(placeholder: string): boolean {
  return placeholder.isWellFormed() && !/[%\\\p{Cc}]/u.test(placeholder);
}

function checkAction(
  said: Pick<SecretEntry, 'on_violation'> & Pick<Secrets, 'passthrough_hosts' | 'violation_action'>,
  field: string,
  refuse: Refuse,
): void {
  const { on_violation: older = null, passthrough_hosts: hosts = [], violation_action: action = null } = said;
  checkHosts(hosts, `${field}.passthrough_hosts`, refuse);
  if (older !== null && (hosts.length > 0 || action !== null))
    throw refuse(
      `${field}.${action === null ? 'passthrough_hosts' : 'violation_action'}`,
      'is another form of on_violation; send one of them',
    );
  if (older?.type !== 'passthrough') return;
  if (older.hosts.length === 0)
    throw refuse(
      `${field}.on_violation.hosts`,
      'must name at least one host that may be sent the placeholder',
    );
  checkHosts(older.hosts, `${field}.on_violation.hosts`, refuse);
}

function checkSubstitution({ injection, substitution }: SecretEntry, field: string, refuse: Refuse): void {
  if (substitution === undefined) return;
  if (injection !== undefined) throw refuse(field, 'is another form of injection; send one of them');
  if (substitution.headers === false && (substitution.header_fields ?? []).length > 0)
    throw refuse(`${field}.header_fields`, 'names headers, but headers is false; leave one of them out');
}

/** Checks host names, which the schema only knows as text. */
export function checkHosts(hosts: readonly HostPattern[], field: string, refuse: Refuse): void {
  for (const [index, host] of hosts.entries()) {
    if (host.type === 'any') continue;
    const isWildcard = host.type === 'wildcard';
    const name = isWildcard ? host.value.replace(/^\*\./, '') : host.value;
    if (isHostName(name) && isWildcard === host.value.startsWith('*.')) continue;
    const wanted = isWildcard ? '*.example.com' : 'example.com, without * and not an address';
    throw refuse(`${field}[${index}].value`, `must be a name such as ${wanted}`);
  }
}

/** Labels of letters, digits, hyphens and underscores between dots. An address is not a name: certificates are not checked for addresses here. */
function isHostName(text: string): boolean {
  const name = text.replace(/\.$/, '');
  const label = /^[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?$/i;
  return !/^[\d.]+$/.test(name) && name.split('.').every((part) => label.test(part));
}
