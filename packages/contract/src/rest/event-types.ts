/**
 * Everything that an audit event can say. The server does not compile with one that is not here; the filter of webhooks, the
 * table of docs/reference/events.md and the types of the SDK derive from it. Types are public: add, never rename.
 */
export const EVENT_TYPES = {
  sandbox_created: { category: 'sandbox', meaning: 'a sandbox was made' },
  sandbox_started: { category: 'sandbox', meaning: 'it runs' },
  sandbox_ending: { category: 'sandbox', meaning: 'its run will end soon: when, and why' },
  sandbox_stopped: { category: 'sandbox', meaning: 'its run ended: how, and what it used' },
  sandbox_failed: { category: 'sandbox', meaning: 'it could not start, or broke' },
  sandbox_deleted: { category: 'sandbox', meaning: 'it was removed' },
  sandbox_renamed: { category: 'sandbox', meaning: 'it has another name' },
  sandbox_network_changed: { category: 'sandbox', meaning: 'what it may reach was changed' },
  sandbox_lifecycle_changed: { category: 'sandbox', meaning: 'how long it may run was changed' },
  policy_denied: { category: 'sandbox', meaning: 'it tried to reach what it may not' },
  secret_violation: { category: 'sandbox', meaning: 'it tried to send a secret where it may not' },
  recovery_chosen: { category: 'sandbox', meaning: 'how it goes on after an outage was chosen' },
  exec_started: { category: 'exec', meaning: 'a command or code was started in a sandbox' },
  process_signalled: { category: 'exec', meaning: 'a detached process was sent a signal' },
  process_removed: { category: 'exec', meaning: 'a detached process was forgotten' },
  code_context_created: { category: 'exec', meaning: 'an interpreter that keeps its state was made' },
  code_context_interrupted: { category: 'exec', meaning: 'what runs in it was interrupted' },
  code_context_restarted: { category: 'exec', meaning: 'it began anew, without its state' },
  code_context_removed: { category: 'exec', meaning: 'it was removed' },
  file_written: { category: 'file', meaning: 'a file of a sandbox was written over REST or by a link' },
  file_changed: {
    category: 'file',
    meaning: 'a file or folder of a sandbox has another owner or mode, or other metadata',
  },
  file_moved: { category: 'file', meaning: 'a file or folder of a sandbox has another path' },
  file_removed: { category: 'file', meaning: 'a file or folder of a sandbox was removed' },
  file_link_created: { category: 'file', meaning: 'a link to read or write a file of a sandbox was made' },
  folder_created: { category: 'file', meaning: 'a folder of a sandbox was made' },
  ssh_session_opened: { category: 'ssh', meaning: 'an SSH session was opened' },
  ssh_session_closed: { category: 'ssh', meaning: 'a visit by SSH ended' },
  preview_created: { category: 'preview', meaning: 'an address of a port was handed out' },
  preview_revoked: { category: 'preview', meaning: 'it was taken back' },
  snapshot_requested: { category: 'snapshot', meaning: 'a snapshot was asked for' },
  snapshot_created: { category: 'snapshot', meaning: 'a snapshot is there' },
  snapshot_deleted: { category: 'snapshot', meaning: 'a snapshot was removed' },
  image_pulled: { category: 'image', meaning: 'an image was fetched' },
  image_removed: { category: 'image', meaning: 'an image was removed' },
  volume_created: { category: 'volume', meaning: 'a volume was made' },
  volume_updated: { category: 'volume', meaning: 'its size, name or labels were changed' },
  volume_deleted: { category: 'volume', meaning: 'it was removed' },
  volume_file_written: { category: 'volume', meaning: 'a file of a volume was written' },
  volume_file_removed: { category: 'volume', meaning: 'a file or folder of a volume was removed' },
  volume_file_copied: { category: 'volume', meaning: 'a file or folder of a volume was copied' },
  volume_file_renamed: { category: 'volume', meaning: 'a file or folder of a volume has another name' },
  volume_folder_created: { category: 'volume', meaning: 'a folder of a volume was made' },
  quota_exceeded: { category: 'quota', meaning: 'something was refused or ended because of a limit' },
  quota_changed: { category: 'quota', meaning: 'a limit was changed' },
  api_key_created: { category: 'api_key', meaning: 'an API key was made' },
  api_key_revoked: { category: 'api_key', meaning: 'an API key was revoked' },
  token_created: { category: 'token', meaning: 'a member made a personal access token' },
  token_revoked: { category: 'token', meaning: 'a member revoked a personal access token' },
  ssh_key_added: { category: 'ssh_key', meaning: 'a member added a public key' },
  ssh_key_removed: { category: 'ssh_key', meaning: 'a member removed a public key' },
  secret_set: { category: 'secret', meaning: 'a secret has another value' },
  secret_removed: { category: 'secret', meaning: 'a secret was removed' },
  registry_updated: { category: 'registry', meaning: 'how to sign in at a registry was set' },
  registry_removed: { category: 'registry', meaning: 'how to sign in at a registry was forgotten' },
  webhook_created: { category: 'webhook', meaning: 'a webhook was made' },
  webhook_updated: { category: 'webhook', meaning: 'a webhook was changed' },
  webhook_secret_rotated: { category: 'webhook', meaning: 'a webhook signs with another secret' },
  webhook_tested: { category: 'webhook', meaning: 'a webhook was sent a test' },
  webhook_redelivered: { category: 'webhook', meaning: 'a delivery was sent once more' },
  webhook_disabled: { category: 'webhook', meaning: 'a webhook failed for days, or said that it is gone' },
  webhook_deleted: { category: 'webhook', meaning: 'a webhook was removed' },
  org_created: { category: 'org', meaning: 'the organization was made' },
  org_updated: { category: 'org', meaning: 'its name or settings were changed' },
  org_deleted: { category: 'org', meaning: 'it was removed, and its webhooks with it' },
  identity_provider_set: { category: 'org', meaning: 'members sign in at an identity provider' },
  identity_provider_removed: { category: 'org', meaning: 'the identity provider was removed' },
  member_invited: { category: 'member', meaning: 'a person was invited' },
  member_joined: { category: 'member', meaning: 'a user became a member' },
  member_role_changed: { category: 'member', meaning: 'a member has another role' },
  member_removed: { category: 'member', meaning: 'a user is no member any more' },
  invite_withdrawn: { category: 'member', meaning: 'an invitation was taken back' },
  invite_declined: { category: 'member', meaning: 'an invitation was declined' },
  user_updated: { category: 'user', meaning: 'a member changed their name or settings' },
  password_changed: { category: 'user', meaning: 'a member changed their password' },
  sign_in_link_created: { category: 'user', meaning: 'the operator made a link to sign in with' },
  second_factor_enabled: { category: 'user', meaning: 'a member signs in with a second factor' },
  second_factor_disabled: { category: 'user', meaning: 'a member signs in without one again' },
  session_created: { category: 'session', meaning: 'a member signed in' },
  session_ended: { category: 'session', meaning: 'a member signed out' },
  sessions_ended: { category: 'session', meaning: 'a member ended their sessions' },
  events_pruned: { category: 'event', meaning: 'events were removed for their age' },
} as const satisfies Readonly<Record<string, { readonly category: string; readonly meaning: string }>>;

export type EventType = keyof typeof EVENT_TYPES;
export type EventCategory = (typeof EVENT_TYPES)[EventType]['category'];

/** An event's type with its category: an event with another category does not compile. */
export type EventKind = {
  [Type in EventType]: { readonly type: Type; readonly category: (typeof EVENT_TYPES)[Type]['category'] };
}[EventType];

// Its keys are the types.
const TYPES = Object.keys(EVENT_TYPES) as readonly EventType[];

/** What a webhook may ask for: a type, a category with `.*`, or everything. */
export type EventPattern = '*' | `${EventCategory}.*` | EventType;
export const EVENT_PATTERNS: EventPattern[] = [
  '*',
  ...new Set(TYPES.map((type) => `${EVENT_TYPES[type].category}.*` as const)),
  ...TYPES,
];

export function matchesEvent(
  patterns: readonly string[],
  { type, category }: { readonly type: string; readonly category: string },
): boolean {
  return patterns.some((pattern) => pattern === '*' || pattern === type || pattern === `${category}.*`);
}
