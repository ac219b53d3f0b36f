import type { Message } from '../frames/frame.ts';
import { abortable } from '../async/abort.ts';
import { ChannelError } from './channel-error.ts';
import { ChannelFiles } from './channel-files.ts';
import { startProcess } from './channel-process.ts';
import type { ChannelProcess, ExecRequest } from './channel-process.ts';
import { Connection } from './connection.ts';
import type { AgentInfo } from './connection.ts';
import { DetachedProcesses } from './detached-processes.ts';
import { readUint } from './payload-fields.ts';
import { runProcess } from './run-process.ts';
import type { RunOptions, RunResult } from './run-process.ts';
import { SingleAnswer } from './single-answer.ts';
import { connectTcp } from './tcp-stream.ts';
import type { TcpStream } from './tcp-stream.ts';
import type { ByteTransport } from './transport.ts';
import { openUdp } from './udp-session.ts';
import type { UdpSession } from './udp-session.ts';

const HANDSHAKE_MS = 10_000;

/** The generation that brought each group of messages. */
const SINCE = { files: 2, tcp: 4, ping: 6 } as const;

export interface CallOptions {
  readonly signal?: AbortSignal;
}

/**
 * The client side of the command channel: processes, files and TCP connections in one sandbox, over one byte transport.
 * - Calls may overlap. Unread output of processes and TCP streams stalls the whole connection (see
 *   `ChannelProcess`), so use a connection of its own for anything whose reader may be slow.
 * - When the connection ends, every call under way rejects with ChannelError, and the agent kills the processes it started.
 * - The sandbox is not trusted: memory for what it sends is bounded, and invalid bytes end the connection.
 */
export class ChannelClient {
  readonly #connection: Connection;
  readonly agent: AgentInfo;
  readonly files: ChannelFiles;
  readonly detached: DetachedProcesses;

  private constructor(connection: Connection, agent: AgentInfo) {
    this.#connection = connection;
    this.agent = agent;
    this.files = new ChannelFiles(connection, agent, () => this.#require('files'));
    this.detached = new DetachedProcesses(connection);
  }

  /** Waits for the agent's hello. The transport is closed when it does not come in time. */
  static async connect(
    transport: ByteTransport,
    options: { readonly signal?: AbortSignal; readonly timeoutMs?: number } = {},
  ): Promise<ChannelClient> {
    const connection = new Connection(transport);
    const agent = await connection.handshake(options.timeoutMs ?? HANDSHAKE_MS, options.signal);
    return new ChannelClient(connection, agent);
  }

  /** Resolves, with the reason, when the connection has ended. */
  get closed(): Promise<ChannelError> {
    return this.#connection.closed;
  }

  /** Ends the connection, and with it everything started over it. */
  close(): void {
    this.#connection.close();
  }

  /**
   * Resolves when the process has started.
   * @throws ExecFailed when it cannot.
   */
  async exec(request: ExecRequest, options: CallOptions = {}): Promise<ChannelProcess> {
    return await startProcess(this.#connection, request, options.signal);
  }

  /** Runs a process to its end and collects its output. */
  async run(request: ExecRequest, options: RunOptions = {}): Promise<RunResult> {
    return await runProcess(
      (signal, isInputOver) => startProcess(this.#connection, request, signal, isInputOver),
      options,
    );
  }

  async connectTcp(host: string, port: number, options: CallOptions = {}): Promise<TcpStream> {
    this.#require('tcp');
    return await connectTcp(this.#connection, host, port, options.signal);
  }

  /** Opens a UDP socket to a port of the sandbox's loopback. `onDatagram` may use the bytes of an answer only until it returns. */
  async openUdp(
    port: number,
    onDatagram: (datagram: Uint8Array) => void,
    options: CallOptions = {},
  ): Promise<UdpSession> {
    return await openUdp(this.#connection, port, onDatagram, options.signal);
  }

  async ping(options: CallOptions = {}): Promise<void> {
    await this.#ask('core.ping', 'core.pong', options.signal);
  }

  /** Counts as activity, so that the sandbox is not idle; returns its activity count. */
  async touch(options: CallOptions = {}): Promise<number> {
    const answer = await this.#ask('core.touch', 'core.touched', options.signal);
    return readUint(answer.payload, 'activity_seq');
  }

  async #ask(type: string, answerType: string, signal: AbortSignal | undefined): Promise<Message> {
    this.#require('ping');
    signal?.throwIfAborted();
    const session = new SingleAnswer(answerType);
    const id = this.#connection.start(session);
    try {
      await abortable(this.#connection.send(id, type, {}), signal);
      return await abortable(session.answer, signal);
    } finally {
      this.#connection.abandon(id);
    }
  }

  #require(feature: keyof typeof SINCE): void {
    if (this.agent.generation >= SINCE[feature]) return;
    throw new ChannelError('unsupported', `The sandbox's agent is too old for this (${feature})`);
  }
}
