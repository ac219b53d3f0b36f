import { setTimeout as delay } from 'node:timers/promises';
import { isErrorCode, PlatformError } from '@svc/contract';
import type { WorkToolOutput } from '@svc/contract/mcp';
import type { Snapshot } from '@svc/contract/rest';
import { listText } from './list-text.ts';
import { NOTHING, pageOf } from './sandbox-tools.ts';
import type { WorkToolHandlers } from './tool-answer.ts';
import type { ToolContext } from './tool-context.ts';

/** Polls the store, because another server may make the snapshot. */
const FIRST_POLL_MS = 10;
const MOST_POLL_MS = 100;
const START_WAIT_SECONDS = 600;

type SnapshotTools = Pick<
  WorkToolHandlers,
  | 'sandbox_create_snapshot'
  | 'sandbox_list_snapshots'
  | 'sandbox_start_from_snapshot'
  | 'sandbox_remove_snapshot'
>;

export function snapshotTools(): SnapshotTools {
  return {
    sandbox_create_snapshot: async ({ sandbox, snapshot: name, replace }, context) => {
      const { id } = await context.sandbox(sandbox);
      const begun = await context.rest('snapshots.create', {
        body: { kind: 'disk', sandbox_id: id, name, force: replace ?? false },
      });
      const made = await waitForSnapshot(context, begun.id);
      return { structured: toView(made), text: describeSnapshot(made) };
    },
    sandbox_list_snapshots: async (input, context) => {
      const { data, next_cursor: next } = (await context.hasAnything())
        ? await context.rest('snapshots.list', { query: pageOf(input) })
        : NOTHING;
      return {
        structured: { snapshots: data.map(toView), next_cursor: next },
        text: listText(data.map(describeSnapshot), next, 'No snapshots'),
      };
    },
    sandbox_start_from_snapshot: async (input, context) => {
      const { sandbox: name, memory, cpus, envs, workdir } = input;
      const { location } = await context.rest('snapshots.getByName', { params: { name: input.snapshot } });
      const { status, last_failure_message: failure } = await context.rest('sandboxes.create', {
        query: { start: true, wait_for: 'running', wait_timeout: START_WAIT_SECONDS },
        body: {
          name,
          source: 'disk_snapshot',
          disk_snapshot_ref: location,
          resources: {
            ...(typeof memory === 'number' ? { memory_mib: memory } : {}),
            ...(typeof cpus === 'number' ? { vcpus: cpus } : {}),
          },
          env: (envs ?? []).map((entry) => {
            const at = entry.indexOf('=');
            return { key: entry.slice(0, at), value: entry.slice(at + 1) };
          }),
          ...(typeof workdir === 'string' ? { runtime: { workdir } } : {}),
        },
      });
      if (status === 'running') return { structured: {}, text: `Sandbox ${name} started successfully` };
      const message = `Sandbox '${name}' is ${status}${failure === null ? '' : `: ${failure}`}`;
      throw new PlatformError('start_failed', message, { details: { state: status } });
    },
    sandbox_remove_snapshot: async ({ snapshot: name }, context) => {
      const { message } = await context.rest('snapshots.removeByName', { params: { name } });
      return { structured: {}, text: message };
    },
  };
}

async function waitForSnapshot(context: ToolContext, operationId: string): Promise<Snapshot> {
  for (let pauseMs = FIRST_POLL_MS; ; pauseMs = Math.min(2 * pauseMs, MOST_POLL_MS)) {
    const operation = await context.rest('snapshots.getOperation', { params: { operation_id: operationId } });
    const { status, result, error } = operation;
    if (result !== null) return result;
    if (error !== null) {
      const code = isErrorCode(error.code) ? error.code : 'internal';
      throw new PlatformError(code, error.message);
    }
    if (status === 'succeeded') {
      throw new PlatformError('snapshot_not_found', 'The snapshot was made, and removed since');
    }
    context.report('making the snapshot');
    await delay(pauseMs, undefined, { signal: context.signal });
  }
}

function describeSnapshot({ name, size_bytes: size, created_at: createdAt }: Snapshot): string {
  return `${name}: ${size} bytes, made ${createdAt}`;
}

function toView(snapshot: Snapshot): WorkToolOutput<'sandbox_create_snapshot'> {
  const { name, size_bytes: size, created_at: createdAt } = snapshot;
  return { name, size_bytes: size, created_at: createdAt };
}
