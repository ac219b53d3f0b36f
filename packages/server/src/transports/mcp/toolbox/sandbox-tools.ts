import { PlatformError } from '@svc/contract';
import type { WorkToolOutput } from '@svc/contract/mcp';
import type { Sandbox } from '@svc/contract/rest';
import { MAX_SHOWN_LENGTH } from './bounded-text.ts';
import { listText } from './list-text.ts';
import type { WorkToolHandlers } from './tool-answer.ts';

const DEFAULT_TAIL = 100;
const MAX_ENTRIES = 1000;
const NO_IMAGES = 'No images yet: sandbox_start downloads the one that it is given, for example "python"';
const ALL_SOURCES = 'stdout,stderr,output,system';

type SandboxTools = Pick<
  WorkToolHandlers,
  | 'sandbox_list'
  | 'sandbox_list_images'
  | 'sandbox_remove'
  | 'sandbox_set_lifetime'
  | 'sandbox_preview_url'
  | 'sandbox_read_logs'
>;

export function sandboxTools(): SandboxTools {
  return {
    sandbox_list: async (input, context) => {
      const { data, next_cursor: next } = (await context.hasAnything())
        ? await context.rest('sandboxes.list', { query: pageOf(input) })
        : NOTHING;
      const sandboxes = data.map(toView);
      return {
        structured: { sandboxes, next_cursor: next },
        text: listText(sandboxes.map(describeSandbox), next, 'No sandboxes'),
      };
    },
    sandbox_list_images: async (_input, context) => {
      const found = (await context.hasAnything()) ? await context.rest('images.list', {}) : [];
      const images = found.map(({ references, size_bytes: size, is_provided: isProvided }) => ({
        references,
        size_bytes: size,
        is_provided: isProvided,
      }));
      const lines = images.map(
        ({ references, size_bytes: size }) => `${references.join(', ')}: ${size} bytes`,
      );
      return { structured: { images }, text: listText(lines, null, NO_IMAGES) };
    },
    sandbox_remove: async ({ sandbox }, context) => {
      const { id } = await context.sandbox(sandbox);
      const { message } = await context.rest('sandboxes.remove', { params: { sandbox_id: id } });
      return { structured: {}, text: message };
    },
    sandbox_set_lifetime: setLifetime,
    sandbox_preview_url: async (input, context) => {
      const sandbox = await context.sandbox(input.sandbox);
      const { port, expires_in_secs: seconds } = input;
      const address = await context.rest('previews.open', {
        params: { sandbox_id: sandbox.id },
        body: { port, expires_in_secs: seconds ?? null },
      });
      const isListening = await context.listens(sandbox, port);
      // Null only in a repeated answer.
      const { url, access, expires_at: expiresAt } = address;
      const note = isListening === false ? `\n[${nothingListens(port)}]` : '';
      return {
        structured: { url: url ?? '', port, access, expires_at: expiresAt, is_listening: isListening },
        text: `${url ?? ''}${note}`,
      };
    },
    sandbox_read_logs: readLogs,
  };
}

const readLogs: WorkToolHandlers['sandbox_read_logs'] = async (input, context) => {
  const { id } = await context.sandbox(input.sandbox);
  const { cursor, tail, sources } = input;
  const { data, has_more: hasMore } = await context.rest('logs.list', {
    params: { sandbox_id: id },
    query: {
      sources: sources?.join(',') ?? ALL_SOURCES,
      limit: MAX_ENTRIES,
      ...(typeof cursor === 'string' ? { cursor } : { tail: tail ?? DEFAULT_TAIL }),
    },
  });
  const shown = data.slice(0, countShown(data.map(({ text }) => text)));
  const last = shown.at(-1)?.cursor ?? cursor ?? null;
  const isMore = hasMore || shown.length < data.length;
  const lines = shown.map(({ ts, source, text }) => `${ts} ${source} ${text}`);
  return {
    structured: { has_more: isMore, next_cursor: last },
    text: [...lines, readOn(last, isMore)].join('\n'),
  };
};

function nothingListens(port: number): string {
  return `nothing listens on port ${port} of the sandbox yet: start a server there with sandbox_start_process, and look at its output`;
}

const setLifetime: WorkToolHandlers['sandbox_set_lifetime'] = async (input, context) => {
  const { ends_in_secs: left, max_duration_secs: most, idle_timeout_secs: idle, keep_alive: isUse } = input;
  // Models send null for an omitted field, so "none" is 0 here.
  const body = {
    ...(typeof left === 'number' ? { ends_in_secs: left } : {}),
    ...(typeof most === 'number' ? { max_duration_secs: most === 0 ? null : most } : {}),
    ...(typeof idle === 'number' ? { idle_timeout_secs: idle === 0 ? null : idle } : {}),
  };
  const hasChange = Object.keys(body).length > 0;
  if (!hasChange && isUse !== true) {
    const reason = 'is missing; give it, or max_duration_secs, idle_timeout_secs or keep_alive';
    const details = { field: 'ends_in_secs', reason };
    throw new PlatformError('invalid_request', `Invalid params: ends_in_secs ${reason}`, { details });
  }
  const params = { sandbox_id: (await context.sandbox(input.sandbox)).id };
  if (hasChange) await context.rest('lifecycle.update', { params, body });
  if (isUse === true) await context.rest('lifecycle.keepAlive', { params });
  const { status, ends_at: endsAt, spec } = await context.rest('sandboxes.get', { params });
  const { max_duration_secs = null, idle_timeout_secs = null } = spec?.lifecycle ?? {};
  return {
    structured: { status, ends_at: endsAt, max_duration_secs, idle_timeout_secs },
    text: `${input.sandbox} is ${status}; it ends at: ${endsAt ?? 'no time'}; limit of a run: ${inSeconds(max_duration_secs)}; idle limit: ${inSeconds(idle_timeout_secs)}`,
  };
};

function inSeconds(limit: number | null): string {
  return limit === null ? 'none' : `${limit} s`;
}

/** The page of an unused namespace. */
export const NOTHING = { data: [], next_cursor: null } as const;

export function pageOf({
  limit,
  cursor,
}: {
  readonly limit?: number | null;
  readonly cursor?: string | null;
}): { limit?: number; cursor?: string } {
  return {
    ...(typeof limit === 'number' ? { limit } : {}),
    ...(typeof cursor === 'string' ? { cursor } : {}),
  };
}

function readOn(cursor: string | null, isMore: boolean): string {
  if (cursor === null) return '[nothing was written]';
  return `[${isMore ? 'there is more: ' : ''}read on with cursor "${cursor}"]`;
}

/** Number of texts that fit into an answer; at least one, so that paging ends. */
function countShown(texts: readonly string[]): number {
  let length = 0;
  const over = texts.findIndex((text, index) => {
    length += text.length;
    return index > 0 && length > MAX_SHOWN_LENGTH;
  });
  return over === -1 ? texts.length : over;
}

function describeSandbox(sandbox: WorkToolOutput<'sandbox_list'>['sandboxes'][number]): string {
  const { name, status, image, memory_mib: memory, cpus, failure } = sandbox;
  const size = image === null ? '' : `, ${image}, ${memory} MiB, ${cpus} CPU`;
  return `${name}: ${status}${size}${failure === null ? '' : `; ${failure}`}`;
}

function toView(sandbox: Sandbox): WorkToolOutput<'sandbox_list'>['sandboxes'][number] {
  const { spec } = sandbox;
  return {
    name: sandbox.name,
    status: sandbox.status,
    image: spec?.image ?? null,
    memory_mib: spec?.resources.memory_mib ?? null,
    cpus: spec?.resources.vcpus ?? null,
    created_at: sandbox.created_at,
    failure: sandbox.last_failure_message,
  };
}
