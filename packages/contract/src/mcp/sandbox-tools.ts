import { Namespace, SandboxReference } from '../operations/sandbox-reference.ts';
import { MAX_PAGE_SIZE } from '../rest/fields.ts';
import { LOG_SOURCES } from '../rest/logs.ts';
import { SANDBOX_STATUSES } from '../rest/sandbox-fields.ts';
import { SnapshotName } from '../rest/snapshots.ts';
import { Type } from '../schema/type.ts';
import { Port } from '../spec/published-port.ts';
import { MAX_DURATION_SECS } from '../spec/sandbox-spec.ts';
import { strictObject } from '../spec/strict.ts';
import { ADDS, nullable, optional, READS, REPLACES, RUNS, TextOnly, type ToolSchema } from './tool-schema.ts';

const MAX_TAIL = 1000;
const YEAR_SECONDS = 366 * 24 * 60 * 60;

const PAGE = {
  limit: optional(Type.Integer({ minimum: 1, maximum: MAX_PAGE_SIZE }), 'How many at most'),
  cursor: optional(Type.String({ minLength: 1, maxLength: 1024 }), '`next_cursor` of the page before'),
};
const NextCursor = nullable(Type.String(), 'Null on the last page');

const SandboxView = strictObject({
  name: Type.String(),
  status: Type.Enum([...SANDBOX_STATUSES]),
  image: nullable(Type.String(), 'Null until it was first started'),
  memory_mib: nullable(Type.Integer(), 'Null until it was first started'),
  cpus: nullable(Type.Number(), 'Null until it was first started'),
  created_at: Type.String(),
  failure: nullable(Type.String(), 'Why the latest start or run went wrong; null when it did not'),
});

const SnapshotView = strictObject({
  name: Type.String(),
  size_bytes: Type.Integer(),
  created_at: Type.String(),
});

const ListedImage = strictObject({
  references: Type.Array(Type.String(), { description: 'The names that lead to it' }),
  size_bytes: Type.Integer({ description: 'Unpacked' }),
  is_provided: Type.Boolean({ description: 'By the operator' }),
});

export const sandboxTools = {
  sandbox_list_images: {
    title: 'List images',
    description:
      'List the images that are on this host for a namespace, which sandboxes start from at once. Others are downloaded by ' +
      'sandbox_start.',
    hints: READS,
    input: strictObject({ namespace: Namespace }),
    output: strictObject({ images: Type.Array(ListedImage) }),
  },
  sandbox_list: {
    title: 'List sandboxes',
    description:
      'List the sandboxes of a namespace, newest first, with their state and what they were made of.',
    hints: READS,
    input: strictObject({ namespace: Namespace, ...PAGE }),
    output: strictObject({ sandboxes: Type.Array(SandboxView), next_cursor: NextCursor }),
  },
  sandbox_remove: {
    title: 'Remove a sandbox',
    description:
      'Stop a sandbox and destroy it with its disk. What is on the disk is lost; take a snapshot first to keep it.',
    hints: REPLACES,
    input: strictObject(SandboxReference),
    ...TextOnly,
  },
  sandbox_set_lifetime: {
    title: 'Change how long a sandbox may run',
    description:
      'Put off or bring forward the end of a running sandbox, set limits for this run and the next ones, or count as use of it, ' +
      'so that its idle time begins anew. Give at least one of ends_in_secs, max_duration_secs, idle_timeout_secs and keep_alive.',
    hints: REPLACES,
    input: strictObject({
      ...SandboxReference,
      ends_in_secs: optional(
        Type.Integer({ minimum: 1, maximum: MAX_DURATION_SECS }),
        'Seconds from now until a sandbox that runs ends; not with max_duration_secs',
      ),
      max_duration_secs: optional(
        Type.Integer({ minimum: 0, maximum: MAX_DURATION_SECS }),
        'Seconds from the start of a run to its end; 0: without an end',
      ),
      idle_timeout_secs: optional(
        Type.Integer({ minimum: 0, maximum: MAX_DURATION_SECS }),
        'Seconds without use after which it ends; 0: never',
      ),
      keep_alive: optional(Type.Boolean(), 'True: its idle time begins anew now'),
    }),
    output: strictObject({
      status: Type.Enum([...SANDBOX_STATUSES]),
      ends_at: nullable(
        Type.String(),
        'When it has run for as long as it may; null: never, or it does not run',
      ),
      max_duration_secs: nullable(Type.Integer(), 'Null: without an end'),
      idle_timeout_secs: nullable(Type.Integer(), 'Null: never'),
    }),
  },
  sandbox_preview_url: {
    title: 'Get the address of a port',
    description:
      'Make an address at which a browser finds what listens on a port of the sandbox, such as a web server started with ' +
      'sandbox_start_process. Give the address to people as it is. Says when nothing listens there yet.',
    hints: ADDS,
    input: strictObject({
      ...SandboxReference,
      port: Port,
      expires_in_secs: optional(
        Type.Integer({ minimum: 1, maximum: YEAR_SECONDS }),
        'Seconds until an address with a token stops working; a day unless given',
      ),
    }),
    output: strictObject({
      url: Type.String({ description: 'Opens as it is' }),
      port: Type.Integer(),
      access: Type.Enum(['open', 'public', 'token'], {
        description: 'Who may: everybody on the machine of the server, everybody, or who has the address',
      }),
      expires_at: nullable(Type.String(), 'Null: never'),
      is_listening: nullable(Type.Boolean(), 'Whether something answers there; null when that is unknown'),
    }),
  },
  sandbox_read_logs: {
    title: 'Read the log of a sandbox',
    description:
      'Read what the main process of a sandbox has written, and with the source system what happened to the sandbox; also of one ' +
      'that has stopped. Background commands have their own output: sandbox_read_output.',
    hints: READS,
    input: strictObject({
      ...SandboxReference,
      tail: optional(
        Type.Integer({ minimum: 1, maximum: MAX_TAIL }),
        'The last so many entries, 100 unless given; not with cursor',
      ),
      cursor: optional(
        Type.String({ minLength: 1, maxLength: 64 }),
        '`next_cursor` of an earlier answer: what came after it',
      ),
      sources: optional(
        Type.Array(Type.Enum([...LOG_SOURCES]), { minItems: 1 }),
        'All unless given; output is of terminals',
      ),
    }),
    isText: true,
    output: strictObject({
      has_more: Type.Boolean({ description: 'Whether more was written already' }),
      next_cursor: nullable(Type.String(), 'Hand it back to read on; null while nothing was written'),
    }),
  },
} as const satisfies Record<string, ToolSchema>;

export const snapshotTools = {
  sandbox_create_snapshot: {
    title: 'Take a snapshot',
    description:
      'Keep the disk of a sandbox as it is now under a name, and wait until that is done. The sandbox may run, and goes on: its ' +
      'files are kept, its processes are not. New sandboxes begin with it: sandbox_start_from_snapshot.',
    hints: ADDS,
    input: strictObject({
      ...SandboxReference,
      snapshot: SnapshotName,
      replace: optional(Type.Boolean(), 'Replace a snapshot of this name'),
    }),
    output: SnapshotView,
  },
  sandbox_list_snapshots: {
    title: 'List snapshots',
    description: 'List the snapshots of a namespace, newest first.',
    hints: READS,
    input: strictObject({ namespace: Namespace, ...PAGE }),
    output: strictObject({ snapshots: Type.Array(SnapshotView), next_cursor: NextCursor }),
  },
  sandbox_start_from_snapshot: {
    title: 'Start a sandbox from a snapshot',
    description:
      'Make a new sandbox whose disk begins as a snapshot has it, start it, and wait until it runs. Later it is started and ' +
      'stopped like any other.',
    hints: RUNS,
    input: strictObject({
      ...SandboxReference,
      snapshot: SnapshotName,
      memory: optional(
        Type.Integer({ minimum: 16, maximum: 4_194_304 }),
        'Memory limit in MiB, 512 unless given',
      ),
      cpus: optional(Type.Integer({ minimum: 1, maximum: 255 }), 'CPU limit in cores, 1 unless given'),
      envs: optional(
        Type.Array(Type.String({ pattern: '^[^=\\u0000]+=[^\\u0000]*$' }), { maxItems: 4096 }),
        'Environment, each entry KEY=VALUE',
      ),
      workdir: optional(
        Type.String({ maxLength: 4096, pattern: '^/[^\\u0000]*$' }),
        'Working directory, an absolute path',
      ),
    }),
    ...TextOnly,
  },
  sandbox_remove_snapshot: {
    title: 'Remove a snapshot',
    description: 'Remove a snapshot; sandboxes made from it keep their disks.',
    hints: REPLACES,
    input: strictObject({ snapshot: SnapshotName, namespace: Namespace }),
    ...TextOnly,
  },
} as const satisfies Record<string, ToolSchema>;
