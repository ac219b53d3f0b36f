import { connect } from 'node:net';
import type { Socket } from 'node:net';
import { join } from 'node:path';
import { decodeMessage, encodeMessage, FrameSplitter, GENERATION } from '@svc/contract/frames';
import type { RuntimeSpec } from '../runtime/runtime.ts';

const REDIAL_MS = 20;

/** PID 1 of a fake sandbox: dials the engine repeatedly, says hello, takes its configuration, and ends when told to. */
export class FakeGuest {
  readonly #spec: RuntimeSpec;
  #socket: Socket | undefined;
  #redial: NodeJS.Timeout | undefined;
  #isConfigured = false;
  #isAlive = true;

  constructor(spec: RuntimeSpec) {
    this.#spec = spec;
    this.#dial();
  }

  get isAlive(): boolean {
    return this.#isAlive;
  }

  end(): void {
    this.#isAlive = false;
    clearTimeout(this.#redial);
    this.#socket?.destroy();
  }

  #dial(): void {
    const socket = connect(join(this.#spec.guestFolder, 'engine.sock'));
    const frames = new FrameSplitter();
    this.#socket = socket;
    socket.on('connect', () => {
      const token = Buffer.from(this.#spec.initToken, 'hex');
      socket.write(Buffer.concat([Buffer.from('SVC1C\0\0\0\0', 'latin1'), token]));
      const times = { boot_time_ns: 0, init_time_ns: 0, ready_time_ns: 0 };
      const about = { version: 'fake', generation: GENERATION, configured: this.#isConfigured };
      socket.write(encodeMessage(0, 'svc.hello', { ...about, ...times, processes: [] }));
    });
    socket.on('data', (chunk) => {
      for (const frame of frames.push(chunk)) this.#receive(socket, frame);
    });
    // The engine may be away; `close` follows and dials again.
    socket.on('error', () => undefined);
    socket.on('close', () => {
      if (this.#isAlive) this.#redial = setTimeout(() => this.#dial(), REDIAL_MS).unref();
    });
    socket.unref();
  }

  #receive(socket: Socket, frame: Uint8Array): void {
    const { id, type } = decodeMessage(frame);
    if (type === 'svc.shutdown') return this.end();
    if (type === 'svc.configure') {
      this.#isConfigured = true;
      socket.write(encodeMessage(id, 'svc.configured'));
    } else if (id !== 0) {
      const message = `a fake sandbox does not serve ${type}`;
      socket.write(encodeMessage(id, 'core.error', { kind: 'unsupported_message_type', message }));
    }
    return undefined;
  }
}
