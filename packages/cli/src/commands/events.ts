import { setTimeout as delay } from 'node:timers/promises';
import { Command } from 'commander';
import type { AuditEvent, Client, ListEventsOptions } from '@svc/sdk';
import { wholeNumber } from '../arguments/number.ts';
import { parseTime } from '../arguments/time.ts';
import { examples } from '../examples.ts';
import { readGlobals } from '../globals.ts';
import { printEntry, printJsonLine, report } from '../terminal/print.ts';

const POLL_MS = 1000;
const MOST_FAILURES = 10;
const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

interface EventOptions {
  readonly follow?: boolean;
  readonly tail: number;
  readonly type?: string;
  readonly sandbox?: string;
  readonly since?: string;
  readonly until?: string;
}

export function createCommand(): Command {
  return new Command('events')
    .description(
      'Shows what was done in the organization, by whom and from where, oldest first; as JSON one line each.',
    )
    .option('-f, --follow', 'go on with what comes, until Ctrl-C')
    .option('-n, --tail <count>', 'the last events only', wholeNumber(0), 50)
    .option('--type <type>', 'only those, such as sandbox_created')
    .option('--sandbox <name>', 'only those about it; by its id also when it is gone')
    .option('--since <time>', 'from this time on (RFC 3339, or 1h for an hour ago)', parseTime)
    .option('--until <time>', 'up to this time', parseTime)
    .addHelpText(
      'after',
      examples(
        ['svc events -f', 'the last 50, and what comes'],
        ['svc events --type exec_started --since 1d -o json', 'commands of the last day, for programs'],
      ),
    )
    .action(showEvents);
}

async function showEvents(options: EventOptions, command: Command): Promise<void> {
  const globals = readGlobals(command);
  const { connectServer } = await import('../server/connect.ts');
  const client = await connectServer(globals);
  const { follow, tail, sandbox, type, since, until } = options;
  const filter = {
    ...(type === undefined ? {} : { type }),
    ...(since === undefined ? {} : { since }),
    ...(until === undefined ? {} : { until }),
    ...(sandbox === undefined ? {} : { sandboxId: await findId(sandbox, client) }),
  };
  const show = (event: AuditEvent) => (globals.isJson ? printJsonLine(event) : printEntry(describe(event)));
  const first = await newest({ ...filter, client }, (_event, count) => count < tail);
  first.forEach(show);
  if (first.length === 0 && follow !== true && !globals.isJson) report('no such events');
  // Events are numbered without gaps, so the number of the last one shows which are new.
  let last =
    first.at(-1)?.sequence ?? (await newest({ client }, (_event, count) => count < 1)).at(-1)?.sequence ?? 0;
  if (follow !== true) return;
  for (let failures = 0; ;) {
    await delay(POLL_MS);
    try {
      const fresh = await newest({ ...filter, client }, ({ sequence }) => sequence > last);
      fresh.forEach(show);
      last = fresh.at(-1)?.sequence ?? last;
      failures = 0;
    } catch (error) {
      failures += 1;
      if (failures > MOST_FAILURES || !(await isTransient(error))) throw error;
    }
  }
}

/** Only the id is known of a removed sandbox. */
async function findId(name: string, client: Client): Promise<string> {
  if (UUID.test(name)) return name;
  const { Sandbox } = await import('@svc/sdk');
  return (await Sandbox.connect(name, { client })).id;
}

/** Waits for a server that restarts, like every command that follows a stream. */
async function isTransient(error: unknown): Promise<boolean> {
  const { SvcError } = await import('@svc/sdk');
  return SvcError.is(error, 'connection_failed') || SvcError.is(error, 'unavailable');
}

/** The newest events up to the limit, oldest first. */
async function newest(
  options: ListEventsOptions,
  isWanted: (event: AuditEvent, count: number) => boolean,
): Promise<readonly AuditEvent[]> {
  const { Events } = await import('@svc/sdk');
  const found: AuditEvent[] = [];
  for await (const event of Events.list(options)) {
    if (!isWanted(event, found.length)) break;
    found.unshift(event);
  }
  return found;
}

function describe({ timestamp, event_type: type, actor, payload }: AuditEvent): string {
  return `${timestamp}  ${type.padEnd(24)}  ${actorName(actor)}  ${fieldsOf(payload)}`;
}

/** `name=web vcpus=1`: without ids of named objects and times that the line begins with, which are in the JSON. */
function fieldsOf(data: AuditEvent['payload']): string {
  // The field is an object in every event.
  const payload = data as Readonly<Record<string, unknown>>;
  const hasName = 'name' in payload || 'sandbox_name' in payload;
  return Object.entries(payload)
    .filter(([key, value]) => value !== null && !(hasName && key === 'sandbox_id') && !key.endsWith('_at'))
    .map(([key, value]) => `${key}=${fieldOf(value)}`)
    .join(' ');
}

function fieldOf(value: unknown): string {
  return typeof value === 'string' && /^[^\s"']+$/.test(value) ? value : JSON.stringify(value);
}

function actorName(actor: AuditEvent['actor']): string {
  if (actor.kind === 'user') return actor.redacted_email;
  if (actor.kind === 'api_key') return `key ${actor.name}`;
  return actor.kind === 'ssh_key' ? `ssh ${actor.label ?? actor.fingerprint}` : actor.label;
}
