import { Duplex } from 'node:stream';
import { decodeMessage, encodeMessage, FrameSplitter, type Message, type Payload } from '@svc/contract';

const HELLO = encodeMessage(0, 'core.ready', {
  boot_time_ns: 1,
  init_time_ns: 2,
  ready_time_ns: 3,
  agent_version: 'test',
});
const ID_RANGE = Uint8Array.of(0, 0, 0, 1, 0xff, 0xff, 0xff, 0xff);

/** Detached processes under the control of a test, and the sandbox's ends of channels to them. */
export class DetachedAgent {
  /** States as svc-init reports them, by key. A test may change them. */
  readonly states = new Map<string, Payload>();
  /** Output of each process on stdout. */
  output = '';
  #lastPid = 1;

  /** One end of a channel; all channels see the same processes. */
  connect(): Duplex {
    const splitter = new FrameSplitter();
    const stream = new Duplex({
      read: () => undefined,
      write: (chunk: Uint8Array, _encoding, done) => {
        for (const frame of splitter.push(chunk)) this.#receive(decodeMessage(frame), stream);
        done();
      },
    });
    stream.push(ID_RANGE);
    stream.push(HELLO);
    return stream;
  }

  end(key: string, end: Payload): void {
    this.states.set(key, { ...this.states.get(key), state: 'exited', code: 0, exited_at_ns: 2e15, ...end });
  }

  #receive({ id, type, payload }: Message, stream: Duplex): void {
    const send = (answer: string, body: Payload = {}) => stream.push(encodeMessage(id, answer, body));
    const key = String(payload['key']);
    const state = this.states.get(key);
    if (type === 'svc.detached.list') send('svc.detached.listed', { processes: [...this.states.values()] });
    else if (type === 'svc.detached.start') send('svc.detached.started', this.#start(key));
    else if (type === 'core.exec.request') {
      // A process that is not detached ends at once.
      send('core.exec.started', { pid: ++this.#lastPid });
      send('core.exec.exited', { code: 0, signal: null, reason: 'exit' });
    } else if (state === undefined)
      send('core.error', { kind: 'invalid_session', message: 'no process has this key' });
    else if (type === 'svc.detached.read') {
      const data = Buffer.from(this.output).subarray(Number(payload['stdout']));
      if (data.length > 0) send('svc.detached.output', { stream: 'stdout', offset: payload['stdout'], data });
      send('svc.detached.end', state);
    } else {
      if (type === 'svc.detached.forget') this.states.delete(key);
      send('svc.detached.done');
    }
  }

  #start(key: string): Payload {
    const started = { pid: ++this.#lastPid, started_at_ns: 1e15 };
    const streams = { stdout: Buffer.byteLength(this.output), stderr: 0, stdout_from: 0, stderr_from: 0 };
    this.states.set(key, { key, ...started, ...streams, state: 'running', tty: false });
    return started;
  }
}
