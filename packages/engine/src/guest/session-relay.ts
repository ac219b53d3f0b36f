import type { ChildProcessByStdio } from 'node:child_process';
import { spawn } from '@svc/contract/node-spawn';
import { fstatSync } from 'node:fs';
import type { Duplex, Readable, Writable } from 'node:stream';
import type { Logger } from 'pino';
import { takeHandle, type TakenHandle } from './socket-transport.ts';
import { readProcessState } from '../host/process-state.ts';

/** The helper, until it has ended. */
type Helper = ChildProcessByStdio<Writable, Readable, null>;

interface Joint {
  readonly helper: Helper;
  readonly caller: Duplex;
  readonly guest: Duplex;
  readonly said: () => void;
  readonly answered: PromiseWithResolvers<boolean>;
}

/**
 * Joins callers to sessions of svc-init in a program of its own (`svc-host --relay`): what they say to each other does not pass through
 * this process, which is told of the end, and that something was said. While that program is not there, or where the kernel does not
 * let it have our connections, nothing is joined here and the caller does it another way.
 */
export class SessionRelay {
  readonly #binary: string;
  readonly #logger: Logger;
  readonly #joints = new Map<number, Joint>();
  #helper: Helper | undefined;
  #lastId = 0;
  #wasStopped = false;
  #isClosed = false;

  constructor(binary: string, logger: Logger) {
    this.#binary = binary;
    this.#logger = logger;
    this.#start();
  }

  /** Of the helper that runs now. */
  get pid(): number | undefined {
    return this.#helper?.pid;
  }

  /**
   * From now on what arrives at either is written to the other, and both are destroyed when it is over: when one of them is destroyed,
   * when the caller leaves, and when the guest has ended and the caller has all of it. `said` is called when the caller says something
   * after a moment of silence, and from time to time while it does. False, and both are as they were, when it could not be done.
   */
  async join(caller: Duplex, guest: Duplex, said: () => void): Promise<boolean> {
    const helper = this.#helper;
    if (helper === undefined) {
      // For the next one: nobody waits for it.
      this.#start();
      return false;
    }
    passOn(caller, guest, said);
    const [one, other] = [takeHandle(caller), takeHandle(guest)];
    if (one === undefined || other === undefined) {
      one?.giveBack();
      other?.giveBack();
      return false;
    }
    const isJoined = await this.#ask({ helper, caller, guest, said }, one, other);
    for (const taken of [one, other]) {
      if (isJoined || caller.destroyed || guest.destroyed) taken.handle.close();
      else taken.giveBack();
    }
    return isJoined;
  }

  /** To be called every second or so: one that a signal stopped, and that is still stopped at the next look, is replaced. */
  look(): void {
    const pid = this.#helper?.pid;
    if (pid === undefined) return;
    const isStopped = readProcessState(pid)?.state === 'T';
    if (isStopped && this.#wasStopped) this.#helper?.kill('SIGKILL');
    this.#wasStopped = isStopped;
  }

  /** Ends what is joined. */
  close(): void {
    this.#isClosed = true;
    this.#helper?.stdin.end();
  }

  async #ask(
    joint: Omit<Joint, 'answered'>,
    { handle: caller }: TakenHandle,
    { handle: guest }: TakenHandle,
  ): Promise<boolean> {
    const id = ++this.#lastId;
    const answered = Promise.withResolvers<boolean>();
    this.#joints.set(id, { ...joint, answered });
    const leave = () => this.#end(id);
    joint.caller.once('close', leave);
    joint.guest.once('close', leave);
    // SAFETY: a number may be another connection's by the time it is read. The inode is this one's alone.
    const names = [caller, guest].flatMap(({ fd }) => [fd, fstatSync(fd).ino]);
    joint.helper.stdin.write(`${[id, 'join', ...names].join('\t')}\n`);
    const isJoined = await answered.promise;
    if (!isJoined) {
      joint.caller.off('close', leave);
      joint.guest.off('close', leave);
    }
    return isJoined;
  }

  /** It is over, or was never joined: what was told meanwhile of it finds nothing. */
  #end(id: number): void {
    const joint = this.#joints.get(id);
    if (joint === undefined) return;
    this.#joints.delete(id);
    joint.answered.resolve(false);
    // Those who have to say something to svc-init about it do so when they are told of the close, before its connection ends.
    joint.caller.destroy();
    joint.guest.destroy();
    setImmediate(() => joint.helper.stdin.write(`${id}\tend\n`));
  }

  #start(): void {
    if (this.#isClosed) return;
    // SAFETY: the path comes from our own configuration. It is to be independent of how, and in which terminal, the engine was started.
    const helper = spawn(this.#binary, ['--relay'], {
      stdio: ['pipe', 'pipe', 'inherit'],
      env: {},
      cwd: '/',
      detached: true,
    });
    this.#helper = helper;
    helper.once('error', (error) => this.#lose(helper, error));
    // Not `exit`: what it said last may still be in the pipe then.
    helper.once('close', () => this.#lose(helper));
    // A write to one that just died fails here; its `close` ends what was joined.
    helper.stdin.on('error', () => undefined);
    let rest = '';
    helper.stdout.setEncoding('latin1').on('data', (text: string) => {
      const lines = (rest + text).split('\n');
      rest = lines.pop() ?? '';
      for (const line of lines) this.#take(line);
    });
  }

  #take(line: string): void {
    const [name, what, ...reason] = line.split('\t');
    const id = Number(name);
    const joint = this.#joints.get(id);
    if (joint === undefined) return;
    if (what === 'said') joint.said();
    else if (what === 'ok') joint.answered.resolve(true);
    else if (what === 'over') this.#end(id);
    else this.#refuse(id, joint, reason.join(' '));
  }

  #refuse(id: number, { answered }: Joint, reason: string): void {
    this.#joints.delete(id);
    this.#logger.debug({ reason }, 'connections are joined by the engine itself');
    answered.resolve(false);
  }

  #lose(helper: Helper, error?: Error): void {
    if (this.#helper !== helper) return;
    this.#helper = undefined;
    this.#wasStopped = false;
    if (!this.#isClosed)
      this.#logger.warn({ error }, 'svc-host ended, and with it the connections that it joined');
    for (const [id, joint] of this.#joints) if (joint.helper === helper) this.#end(id);
  }
}

/** What was read before anybody else reads. */
function passOn(caller: Duplex, guest: Duplex, said: () => void): void {
  for (const [from, to] of [
    [caller, guest],
    [guest, caller],
  ] as const) {
    const taken = takeHandle(from);
    const chunks: unknown[] = [];
    // Without its handle, or it would begin to read again.
    for (let chunk: unknown = from.read(); chunk !== null; chunk = from.read()) chunks.push(chunk);
    taken?.giveBack();
    if (chunks.length > 0 && from === caller) said();
    for (const chunk of chunks) to.write(chunk);
  }
}
