import type { ColumnType, Kysely } from 'kysely';
import type {
  PasswordRow,
  SecondFactorRow,
  IdentityProviderRow,
  OwnerLinkRow,
  ProviderIdentityRow,
  SessionRow,
  SignInFailureRow,
  SignInLinkRow,
  UserRow,
} from './account-rows.ts';
import type { CodeContextRow, CodeLeaseRow } from './code-context-rows.ts';
import type {
  ApiKeyRow,
  PreviewTokenRow,
  RegistryRow,
  SecretRow,
  SshKeyRow,
  TokenRow,
} from './credential-rows.ts';
import type { WebhookDeliveryRow, WebhookRow } from './webhook-rows.ts';

/**
 * The tables, the same in SQLite and PostgreSQL. Times are RFC 3339 text in UTC with milliseconds, so that they sort
 * as text; documents are JSON text; booleans are 0 and 1. Rows of removed objects stay, with `removed_at`, because
 * usage and events refer to them; their names can be used again.
 */
export interface Tables {
  plans: PlanRow;
  organizations: OrganizationRow;
  users: UserRow;
  members: MemberRow;
  invites: InviteRow;
  api_keys: ApiKeyRow;
  tokens: TokenRow;
  passwords: PasswordRow;
  second_factors: SecondFactorRow;
  sessions: SessionRow;
  identity_providers: IdentityProviderRow;
  provider_identities: ProviderIdentityRow;
  sign_in_links: SignInLinkRow;
  owner_links: OwnerLinkRow;
  sign_in_failures: SignInFailureRow;
  ssh_keys: SshKeyRow;
  preview_tokens: PreviewTokenRow;
  registries: RegistryRow;
  secrets: SecretRow;
  sandboxes: SandboxRow;
  sandbox_labels: SandboxLabelRow;
  sandbox_volumes: SandboxVolumeRow;
  sandbox_patches: SandboxPatchesRow;
  runs: RunTable;
  clocks: ClockRow;
  processes: ProcessRow;
  code_contexts: CodeContextRow;
  code_turns: CodeLeaseRow;
  volumes: VolumeRow;
  volume_usage: VolumeUsageRow;
  snapshots: SnapshotRow;
  snapshot_operations: SnapshotOperationRow;
  events: EventRow;
  file_changes: FileChangeRow;
  webhooks: WebhookRow;
  webhook_deliveries: WebhookDeliveryRow;
  idempotency: IdempotencyRow;
  metric_samples: MetricSampleRow;
  keys: KeyRow;
}

export type Database = Kysely<Tables>;

/** PostgreSQL returns 64-bit integers as text; `Number` reads both. */
export type BigCount = ColumnType<number | string, number, number>;

/** A column with a default, which an insert may omit. */
type Defaulted<T> = ColumnType<T, T | undefined, T>;

/**
 * A plan with the limits of organizations; `document` is JSON, `position` the order in which the operator listed the
 * plans.
 */
export interface PlanRow {
  name: string;
  position: number;
  document: string;
}

/** A namespace of the self-hosted surface is the slug of an organization. */
export interface OrganizationRow {
  id: string;
  slug: string;
  /** Null: the slug is the name. */
  name: Defaulted<string | null>;
  created_at: string;
  updated_at: Defaulted<string | null>;
  deleted_at: Defaulted<string | null>;
  mfa_required: Defaulted<number>;
  plan: Defaulted<string>;
  /** Overrides of the plan's limits; JSON. */
  quotas: Defaulted<string>;
  is_suspended: Defaulted<number>;
  /** Sequence of the latest event. Also the lock that every change of the organization takes. */
  event_sequence: ColumnType<number | string, number | undefined, number>;
  event_hash: Defaulted<string>;
  event_timestamp: Defaulted<string>;
  /** Sequence of the last event that was removed by retention; 0: none was. */
  pruned_sequence: ColumnType<number | string, number | undefined, number>;
  pruned_hash: Defaulted<string>;
}

export interface MemberRow {
  organization_id: string;
  user_id: string;
  role: string;
  created_at: string;
}

export interface InviteRow {
  id: string;
  organization_id: string;
  email: string;
  role: string;
  token_hash: string;
  invited_by: string;
  created_at: string;
  expires_at: string;
}

export interface SandboxRow {
  id: string;
  organization_id: string;
  name: string;
  slug: string;
  /** Without the values of secrets. */
  spec: string;
  ports: string;
  desired: string;
  observed: string;
  /** Increases with every change that is visible to callers. */
  version: Defaulted<number>;
  is_ephemeral: Defaulted<number>;
  isolation: Defaulted<string | null>;
  node: Defaulted<string | null>;
  status_reason: Defaulted<string | null>;
  failure_code: Defaulted<string | null>;
  failure_message: string | null;
  unavailable_since: Defaulted<string | null>;
  recovery_ends_at: Defaulted<string | null>;
  /** When `observed` last changed. */
  state_since: Defaulted<string | null>;
  snapshot_id: Defaulted<string | null>;
  has_host_paths: Defaulted<number>;
  /** The resolved spec: what image and host made of it; JSON. */
  resolved: Defaulted<string | null>;
  /** Sealed: secret values and registry passwords. */
  secrets: Defaulted<string | null>;
  /** Id of the latest change of its secrets, until the engine has received it. */
  values_due: Defaulted<string | null>;
  /** The latest scheduled end of its run that was announced. */
  announced_end: Defaulted<string | null>;
  /** The actor of the last requested state change; JSON. */
  wish: Defaulted<string | null>;
  /** The server that holds the lease on the sandbox, and when the lease expires. */
  claimed_by: Defaulted<string | null>;
  claimed_until: Defaulted<string | null>;
  created_at: string;
  updated_at: Defaulted<string | null>;
  started_at: string | null;
  ended_at: string | null;
  removed_at: string | null;
}

export interface SandboxLabelRow {
  sandbox_id: string;
  organization_id: string;
  key: string;
  value: string;
  /** Copy of the sandbox's `created_at`, for pagination in its order. */
  created_at: string;
}

export interface SandboxVolumeRow {
  sandbox_id: string;
  volume_id: string;
  mount_path: string;
  is_read_only: number;
}

/** Files to write to the disk of a sandbox before its first run; JSON. */
interface SandboxPatchesRow {
  sandbox_id: string;
  patches: string;
}

/** One run of a sandbox, with the allocated sizes; `ended_at` is null while it lasts. */
export interface RunRow {
  id: string;
  sandbox_id: string;
  organization_id: string;
  vcpus: number;
  memory_mib: number;
  disk_mib: number;
  started_at: string;
  ended_at: string | null;
  end_reason: string | null;
  /** The boot of the host in which the run took place; null in rows from before this was recorded. */
  boot_id: string | null;
  /** The start time as first reported, which identifies the run; `started_at` is corrected when the clock is set. */
  reported_start: string | null;
}

interface RunTable extends Omit<RunRow, 'boot_id' | 'reported_start'> {
  boot_id: Defaulted<string | null>;
  reported_start: Defaulted<string | null>;
}

/** One boot of the host. */
export interface ClockRow {
  boot_id: string;
  /** Wall clock less the time since boot; changes when the clock is set. */
  offset_ms: BigCount;
  /** When a server last recorded that runs were still open. */
  seen_at: string;
}

/**
 * A file change that is in progress, with its event: if the server dies, another one writes the event with an unknown
 * outcome.
 */
export interface FileChangeRow {
  id: string;
  /** JSON. */
  event: string;
  leased_until: string;
}

/** A process that outlives its client, in the state in which it was last seen. */
export interface ProcessRow {
  /** Also identifies the process inside the sandbox. */
  id: string;
  organization_id: string;
  sandbox_id: string;
  /** The run of the sandbox in which the process lives; it ends with it. */
  run_id: string;
  name: string | null;
  /** Null: not known yet whether it started. */
  pid: number | null;
  /** Program and arguments, truncated when long; JSON. */
  command: string;
  is_tty: number;
  started_at: string;
  ended_at: string | null;
  /** Exit code or signal; JSON. */
  exit: string | null;
  stdout_bytes: BigCount;
  stderr_bytes: BigCount;
}

export interface VolumeRow {
  id: string;
  organization_id: string;
  kind: string;
  /** Null: the volume of kind `host`. */
  name: string | null;
  capacity_gib: number | null;
  labels: string;
  status: string;
  version: Defaulted<number>;
  /** Whether the engine has created it. */
  is_made: Defaulted<number>;
  created_at: string;
  updated_at: string;
  removed_at: string | null;
}

/** A time interval in which a volume held this many bytes. */
export interface VolumeUsageRow {
  volume_id: string;
  organization_id: string;
  started_at: string;
  ended_at: string;
  used_bytes: BigCount;
}

export interface SnapshotRow {
  id: string;
  organization_id: string;
  name: string;
  sandbox_id: string;
  sandbox_name: string;
  digest: string;
  size_bytes: BigCount;
  manifest: string;
  labels: string;
  created_at: string;
  removed_at: string | null;
}

export interface SnapshotOperationRow {
  id: string;
  organization_id: string;
  snapshot_id: string;
  snapshot_name: string;
  sandbox_id: string;
  sandbox_name: string;
  request: string;
  status: string;
  error: string | null;
  claimed_by: Defaulted<string | null>;
  claimed_until: Defaulted<string | null>;
  created_at: string;
  updated_at: string;
  completed_at: string | null;
}

/** Append-only. `hash` covers the row and `previous_hash`, so that manipulation is detected. */
export interface EventRow {
  id: string;
  organization_id: string;
  sequence: BigCount;
  category: string;
  event_type: string;
  actor: string;
  payload: string;
  request_id: string | null;
  source_address: string | null;
  timestamp: string;
  previous_hash: string;
  hash: string;
}

/** `status` is null while the first call is in progress. */
export interface IdempotencyRow {
  scope: string;
  key: string;
  fingerprint: string;
  status: number | null;
  body: string | null;
  owner: string;
  leased_until: string;
  created_at: string;
}

export interface MetricSampleRow {
  /** Id of a sandbox or a volume. */
  owner_id: string;
  at_ms: BigCount;
  sample: string;
}

/** An issued key of the self-hosted surface. The key itself is not stored: `fingerprint` is its SHA-256. */
export interface KeyRow {
  id: string;
  fingerprint: string;
  namespace: string;
  created_at: string;
  expires_at: string | null;
}
