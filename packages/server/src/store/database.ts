import type { Kysely } from 'kysely';

/**
 * The tables, the same in SQLite and PostgreSQL. Times are RFC 3339 text in UTC with milliseconds, so that they sort as
 * text; documents are JSON text.
 */
export interface Tables {
  organizations: OrganizationRow;
  sandboxes: SandboxRow;
  runs: RunRow;
  keys: KeyRow;
}

export type Database = Kysely<Tables>;

/** A namespace of the self-hosted surface is the slug of an organization. */
export interface OrganizationRow {
  id: string;
  slug: string;
  created_at: string;
}

/** Rows of removed sandboxes stay, with `removed_at`: runs refer to them, and the name is free again. */
export interface SandboxRow {
  id: string;
  organization_id: string;
  name: string;
  spec: string;
  ports: string;
  desired: string;
  observed: string;
  failure_message: string | null;
  created_at: string;
  started_at: string | null;
  ended_at: string | null;
  removed_at: string | null;
}

/** One stretch of running, with the sizes that were allocated; `ended_at` is null while it lasts. */
export interface RunRow {
  id: string;
  sandbox_id: string;
  vcpus: number;
  memory_mib: number;
  disk_mib: number;
  started_at: string;
  ended_at: string | null;
  end_reason: string | null;
}

/** A key that was handed out. The key itself is not kept: `fingerprint` is its SHA-256. */
export interface KeyRow {
  id: string;
  fingerprint: string;
  namespace: string;
  created_at: string;
  expires_at: string | null;
}
