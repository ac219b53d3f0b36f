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
import type { CodeContextRow, CodeTurnRow } from './code-context-rows.ts';
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
 * The tables, the same in SQLite and PostgreSQL. Times are RFC 3339 text in UTC with milliseconds, so that they sort as
 * text; documents are JSON text; truths are 0 and 1. Rows of removed things stay, with `removed_at`: usage and events
 * refer to them, and their names are free again.
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
  code_turns: CodeTurnRow;
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

/** PostgreSQL hands 64-bit integers out as text; `Number` reads either. */
export type BigCount = ColumnType<number | string, number, number>;

/** What a new row may leave to the column's default. */
type Defaulted<T> = ColumnType<T, T | undefined, T>;

/** What organizations may have; `document` is JSON, `position` the order in which the operator wrote them. */
export interface PlanRow {
  name: string;
  position: number;
  document: string;
}

/** A namespace of the self-hosted surface is the slug of an organization. */
export interface OrganizationRow {
  id: string;
  slug: string;
  /** Null: as the slug. */
  name: Defaulted<string | null>;
  created_at: string;
  updated_at: Defaulted<string | null>;
  deleted_at: Defaulted<string | null>;
  mfa_required: Defaulted<number>;
  plan: Defaulted<string>;
  /** What this organization has in place of its plan's limits; JSON. */
  quotas: Defaulted<string>;
  is_suspended: Defaulted<number>;
  /** Of the latest event; also the lock that every change of the organization takes. */
  event_sequence: ColumnType<number | string, number | undefined, number>;
  event_hash: Defaulted<string>;
  event_timestamp: Defaulted<string>;
  /** Of the last event that was removed for its age; 0: none was. */
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
  /** Grows with every change that a caller can see. */
  version: Defaulted<number>;
  is_ephemeral: Defaulted<number>;
  isolation: Defaulted<string | null>;
  status_reason: Defaulted<string | null>;
  failure_code: Defaulted<string | null>;
  failure_message: string | null;
  unavailable_since: Defaulted<string | null>;
  recovery_ends_at: Defaulted<string | null>;
  /** When `observed` last changed. */
  state_since: Defaulted<string | null>;
  snapshot_id: Defaulted<string | null>;
  has_host_paths: Defaulted<number>;
  /** What image and host made of the spec; JSON. */
  resolved: Defaulted<string | null>;
  /** Sealed: values of secrets and registry passwords. */
  secrets: Defaulted<string | null>;
  /** Names the change of its secrets that the engine was not told of yet. */
  values_due: Defaulted<string | null>;
  /** The latest end of its run that was announced. */
  announced_end: Defaulted<string | null>;
  /** Who last asked for a change of its state; JSON. */
  wish: Defaulted<string | null>;
  /** Which server works on it, and until when nobody else does. */
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
  /** The sandbox's, for pages in its order. */
  created_at: string;
}

export interface SandboxVolumeRow {
  sandbox_id: string;
  volume_id: string;
  mount_path: string;
  is_read_only: number;
}

/** What is written to the disk of a sandbox before it first runs; JSON. */
interface SandboxPatchesRow {
  sandbox_id: string;
  patches: string;
}

/** One stretch of running, with the sizes that were allocated; `ended_at` is null while it lasts. */
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
  /** Which start of the host it is of; null: of a time when that was not noted. */
  boot_id: string | null;
  /** When it began as it was told, by which it is known; `started_at` is moved when the clock is set. */
  reported_start: string | null;
}

interface RunTable extends Omit<RunRow, 'boot_id' | 'reported_start'> {
  boot_id: Defaulted<string | null>;
  reported_start: Defaulted<string | null>;
}

/** One start of the host. */
export interface ClockRow {
  boot_id: string;
  /** What the clock shows less how long the host is up; another one after the clock was set. */
  offset_ms: BigCount;
  /** When a server last noted that runs last. */
  seen_at: string;
}

/** A change of a file that is under way: its event, for the case that nobody is left to tell how it ended. */
export interface FileChangeRow {
  id: string;
  /** JSON. */
  event: string;
  leased_until: string;
}

/** A process that was started to outlive its client. What is here is what was last seen of it. */
export interface ProcessRow {
  /** Also its key in the sandbox. */
  id: string;
  organization_id: string;
  sandbox_id: string;
  /** It cannot outlive this run of its sandbox. */
  run_id: string;
  name: string | null;
  /** Null: whether it started is not known yet. */
  pid: number | null;
  /** Program and arguments, cut off when they are long; JSON. */
  command: string;
  is_tty: number;
  started_at: string;
  ended_at: string | null;
  /** How it ended; JSON. */
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
  /** Whether the orchestrator has it yet. */
  is_made: Defaulted<number>;
  created_at: string;
  updated_at: string;
  removed_at: string | null;
}

/** A stretch of time in which a volume held this much. */
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

/** Append-only. `hash` covers the row and `previous_hash`, so that a change shows. */
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

/** `status` is null while the first call is under way. */
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
  /** Of a sandbox or a volume. */
  owner_id: string;
  at_ms: BigCount;
  sample: string;
}

/** A key of the self-hosted surface that was handed out. The key itself is not kept: `fingerprint` is its SHA-256. */
export interface KeyRow {
  id: string;
  fingerprint: string;
  namespace: string;
  created_at: string;
  expires_at: string | null;
}
