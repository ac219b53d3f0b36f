import type { Duplex } from 'node:stream';
import { PlatformError } from '@svc/contract';
import { socketTransport } from '@svc/contract/node-socket-transport';
import type { WebSocket } from 'ws';
import { explainBreak } from '../../orchestrator/explain-break.ts';
import { OUT_OF_MEMORY } from '../../orchestrator/not-running.ts';
import type { Orchestrator } from '../../orchestrator/orchestrator.ts';
import { createOpenChannel, type OpenChannel } from '../../sandboxes/open-channel.ts';
import type { Database } from '../../store/database.ts';
import type { SandboxRecord } from '../../store/sandboxes.ts';
import { activeSpan } from '../../tracing/span.ts';
import { CLOSE } from './close.ts';
import type { EventQueue } from './event-queue.ts';
import { relay, type ChannelEnd } from './relay.ts';
import type { Visit } from './web-socket-upgrades.ts';

const OPEN_MS = 10_000;

export interface CommandChannelParts {
  readonly database: Database;
  readonly orchestrator: Orchestrator;
  readonly events: EventQueue;
  readonly keepAliveMs: number;
}

/** The command channel of a sandbox: forwards frames between a WebSocket and the sandbox. */
export class CommandChannel {
  readonly #parts: CommandChannelParts;
  readonly #openChannel: OpenChannel;

  constructor(parts: CommandChannelParts) {
    this.#parts = parts;
    this.#openChannel = createOpenChannel(parts.orchestrator, parts.database);
  }

  /** Connects to the sandbox before it accepts the WebSocket, so that an open WebSocket has a sandbox behind it. */
  async serve(visit: Visit): Promise<{ readonly over: Promise<void> }> {
    const stream = await this.#openStream(visit);
    const client = await visit.accept().catch((error: unknown) => {
      stream.destroy();
      throw error;
    });
    return { over: this.#relay(client, stream, visit) };
  }

  async #openStream({ sandbox, socket }: Visit): Promise<Duplex> {
    const over = new AbortController();
    const leave = () => over.abort(new Error('the client left'));
    socket.once('close', leave);
    const timer = setTimeout(() => over.abort(new Error('the sandbox did not answer in time')), OPEN_MS);
    try {
      return await this.#parts.orchestrator.openStream(sandbox.id, over.signal);
    } catch (error) {
      if (over.signal.aborted)
        throw new PlatformError('unavailable', 'the sandbox did not answer in time; try again');
      if (PlatformError.is(error, 'sandbox_not_found')) throw notRunning(sandbox);
      throw error;
    } finally {
      clearTimeout(timer);
      socket.off('close', leave);
    }
  }

  async #relay(client: WebSocket, stream: Duplex, visit: Visit): Promise<void> {
    const { request, sandbox, authority, sourceAddress, recheck } = visit;
    const { organization, actor } = authority;
    const span = activeSpan();
    span?.note({ 'svc.organization': organization.slug, 'svc.sandbox.id': sandbox.id });
    await relay(client, socketTransport(stream), {
      keepAliveMs: this.#parts.keepAliveMs,
      explainEnd: () => explainEnd(this.#openChannel, sandbox),
      recheck,
      onExec: async (exec) => {
        // Marks the start only: the bytes are forwarded unread, so the end is not seen here.
        span?.child('exec', { attributes: { 'svc.sandbox.id': sandbox.id } }).end();
        await this.#parts.events.append({
          organizationId: organization.id,
          type: 'exec_started',
          category: 'exec',
          actor,
          payload: { sandbox_id: sandbox.id, sandbox_name: sandbox.name, ...exec },
          requestId: request.id,
          sourceAddress,
        });
      },
    });
  }
}

/** The engine has not created the sandbox; to callers it has not started yet. */
function notRunning(sandbox: SandboxRecord): PlatformError {
  return new PlatformError('sandbox_not_running', `Sandbox '${sandbox.name}' is not running; start it first`);
}

/** Why the sandbox ended the channel, for the client: it may have run out of memory. */
async function explainEnd(openChannel: OpenChannel, { id, name }: SandboxRecord): Promise<ChannelEnd> {
  const why = await explainBreak((signal) => openChannel(id, signal));
  const { reason, ended } = PlatformError.is(why) ? (why.details ?? {}) : {};
  return reason === OUT_OF_MEMORY && typeof ended === 'string'
    ? { code: CLOSE.outOfMemory, message: `Sandbox '${name}' ended, ${ended}` }
    : null;
}
