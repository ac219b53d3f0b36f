import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { waitUntil } from '@svc/contract/testing';
import { Client, Sandbox, type DetachedOutput } from '@svc/sdk';
import { BUSYBOX } from '../engine/start-engine.ts';

const ANSWER_MS = 120_000;
const PAUSE_MS = 100;
/** Prints numbered lines until the file `/tmp/stop` exists. */
const COUNTER =
  'i=0; until [ -e /tmp/stop ]; do i=$((i+1)); echo "line $i"; [ $((i % 50)) = 0 ] && sleep 0.02; done; echo "last $i"';

/**
 * Callers of every kind, who insist on their answers as clients do: under the same key, again and again. What they have done
 * leaves traces in the sandbox, by which it can be seen afterwards that each thing was done once.
 */
export class Load {
  readonly #url: string;
  readonly #steady: Sandbox;
  readonly #stop = new AbortController();
  /** Set while callers are held; resolved when they may go on. */
  #hold: PromiseWithResolvers<void> | undefined;
  #active = 0;
  readonly #workers: Promise<void>[] = [];
  readonly #failures: unknown[] = [];
  readonly #pieces: DetachedOutput[] = [];
  #count = 0;

  private constructor(url: string, steady: Sandbox) {
    this.#url = url;
    this.#steady = steady;
  }

  static async start(url: string): Promise<Load> {
    const steady = await Sandbox.create({
      client: new Client({ apiUrl: url }),
      name: 'steady',
      image: BUSYBOX,
    });
    const load = new Load(url, steady);
    const counter = await steady.commands.startDetached('sh', ['-c', COUNTER]);
    load.#employ(load.#read(counter.output()));
    load.#employ(load.#repeat(() => load.#process()));
    load.#employ(load.#repeat(() => load.#input()));
    load.#employ(load.#repeat(() => load.#life('hasty', 'start=true')));
    load.#employ(load.#repeat(() => load.#life('patient', 'start=true&wait_for=running')));
    return load;
  }

  /** How many calls were answered so far. */
  get calls(): number {
    return this.#count;
  }

  /** Resolves when every caller has the answer to its last call; until `release` there is no other. */
  async hold(): Promise<void> {
    this.#hold = Promise.withResolvers<void>();
    await waitUntil(() => this.#active === 0, {
      timeoutMs: 2 * ANSWER_MS,
      what: 'every caller has its answer',
    });
    this.#assertNobodyGaveUp();
  }

  release(): void {
    this.#hold?.resolve();
    this.#hold = undefined;
  }

  /** Ends the load. @throws when something was done twice, not at all, or a byte was lost */
  async finish(): Promise<void> {
    this.#stop.abort();
    await this.#command('touch /tmp/stop');
    await Promise.all(this.#workers);
    this.#assertNobodyGaveUp();
    const text = this.#pieces.map((piece) =>
      piece.kind === 'data' ? Buffer.from(piece.data).toString() : '!',
    );
    const lines = text.join('').trimEnd().split('\n');
    const last = Number(/^last (\d+)$/.exec(lines.pop() ?? '')?.[1]);
    assert.equal(lines.length, last, 'a stream has every line');
    for (const [index, line] of lines.entries())
      assert.equal(line, `line ${index + 1}`, 'in order, each once');
    for (const kind of ['process', 'input']) {
      const doubled = await this.#command(`sort /tmp/${kind} 2>/dev/null | uniq -d`);
      assert.equal(doubled, '', `${kind}: done more than once`);
    }
    this.#steady.close();
  }

  async #repeat(work: () => Promise<void>): Promise<void> {
    this.#active += 1;
    try {
      while (!this.#stop.signal.aborted) {
        await work();
        await this.#rest();
      }
    } finally {
      this.#active -= 1;
    }
  }

  /** Between two calls; for as long as callers are held. */
  async #rest(): Promise<void> {
    this.#active -= 1;
    await this.#hold?.promise;
    this.#active += 1;
    await delay(PAUSE_MS);
  }

  /** A failed caller is reported at the next check; it does not end the process. */
  #employ(work: Promise<void>): void {
    this.#workers.push(work.catch((error: unknown) => void this.#failures.push(error)));
  }

  #assertNobodyGaveUp(): void {
    if (this.#failures.length > 0) throw new AggregateError(this.#failures, 'callers gave up');
  }

  async #read(output: AsyncIterable<DetachedOutput>): Promise<void> {
    for await (const piece of output) this.#pieces.push(piece);
  }

  async #process(): Promise<void> {
    const word = randomUUID();
    await this.#insist(`/v1/sandboxes/${this.#steady.id}/processes`, command(`echo ${word} >> /tmp/process`));
    // Done once, not at most once.
    const isThere = async () => (await this.#command(`grep -c ${word} /tmp/process; true`)) === '1';
    await waitUntil(isThere, { timeoutMs: ANSWER_MS, what: `process ${word} has run` });
  }

  async #input(): Promise<void> {
    const path = `/v1/sandboxes/${this.#steady.id}/processes`;
    const { id } = await this.#insist(path, { ...command('cat >> /tmp/input'), stdin: true });
    await this.#insist(`${path}/${id}/stdin?close=true`, `${randomUUID()}\n`);
  }

  /** A sandbox from its beginning to its end; its name is free again afterwards. */
  async #life(name: string, query: string): Promise<void> {
    const image = { type: 'oci', reference: BUSYBOX };
    const { id } = await this.#insist(`/v1/sandboxes?${query}`, { name, image });
    await this.#rest();
    await this.#insist(`/v1/sandboxes/${id}/stop`, {}, 'POST');
    await this.#rest();
    await this.#insist(`/v1/sandboxes/${id}`, undefined, 'DELETE');
  }

  /** Repeats the command until it has an answer, also while processes of svc are killed. */
  async #command(script: string): Promise<string> {
    for (const deadline = Date.now() + ANSWER_MS; ; await delay(PAUSE_MS)) {
      try {
        return Buffer.from((await this.#steady.exec('sh', ['-c', script])).stdout)
          .toString()
          .trim();
      } catch (error) {
        if (Date.now() > deadline) throw error;
      }
    }
  }

  async #insist(
    path: string,
    body: object | string | undefined,
    method = 'POST',
  ): Promise<{ readonly id: string }> {
    const isText = typeof body === 'string';
    const type = isText ? 'application/octet-stream' : 'application/json';
    const headers = {
      'idempotency-key': randomUUID(),
      ...(body === undefined ? {} : { 'content-type': type }),
    };
    const content = body === undefined ? {} : { body: isText ? body : JSON.stringify(body) };
    let last = '';
    for (const deadline = Date.now() + ANSWER_MS; Date.now() < deadline; await delay(PAUSE_MS)) {
      try {
        const response = await fetch(this.#url + path, { method, headers, ...content });
        last = await response.text();
        if (response.status >= 500) continue;
        assert.equal(response.status, 200, `${method} ${path}: ${last}`);
        this.#count += 1;
        return JSON.parse(last) as { readonly id: string };
      } catch (error) {
        // The server does not listen yet, or was killed.
        if (error instanceof assert.AssertionError) throw error;
        last = String(error);
      }
    }
    throw new Error(`${method} ${path} was never answered: ${last}`);
  }
}

function command(script: string) {
  return { cmd: 'sh', args: ['-c', script] };
}
