import type { HostPattern, SecretEntry, Secrets } from './secrets.ts';

type Action = { readonly type: 'block' | 'block_and_log' | 'block_and_terminate' };

/** What happens to a placeholder that is sent to a host that may not get the value. */
export interface ViolationRule {
  /** Hosts to which the placeholder is sent unchanged. */
  readonly passthroughHosts: readonly HostPattern[];
  /** The action for all other hosts. Null: that of the next wider rule. */
  readonly action: Action | null;
}

/** Where a placeholder is replaced. */
export interface Places {
  readonly headers: boolean;
  /** Null: in every header. */
  readonly headerFields: readonly string[] | null;
  readonly basicAuth: boolean;
  readonly queryParams: boolean;
  readonly body: boolean;
}

/** The rule of an entry, or of all entries, from either of its two forms. */
export function violationRule({
  on_violation: older = null,
  passthrough_hosts: passthroughHosts = [],
  violation_action: action = null,
}: Pick<Secrets, 'passthrough_hosts' | 'violation_action'> &
  Pick<SecretEntry, 'on_violation'>): ViolationRule {
  if (older?.type === 'passthrough') return { passthroughHosts: older.hosts, action: null };
  return { passthroughHosts, action: older ?? action };
}

/** The places of an entry, from either of their two forms. */
export function placesOf({
  injection,
  substitution,
}: Pick<SecretEntry, 'injection' | 'substitution'>): Places {
  if (substitution === undefined)
    return {
      headers: injection?.headers ?? true,
      headerFields: null,
      basicAuth: injection?.basic_auth ?? true,
      queryParams: injection?.query_params ?? false,
      body: injection?.body ?? false,
    };
  const { headers = true, header_fields: fields = [], query = false, body = false } = substitution;
  const headerFields = fields.length === 0 ? null : fields.map((field) => field.toLowerCase());
  return {
    headers,
    headerFields,
    basicAuth: headers && (headerFields?.includes('authorization') ?? true),
    queryParams: query,
    body,
  };
}
