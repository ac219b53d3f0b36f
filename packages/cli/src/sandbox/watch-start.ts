import { setTimeout as delay } from 'node:timers/promises';
import { Sandbox, SvcError, type Client, type FetchProgress } from '@svc/sdk';
import { fetchText } from '../terminal/fetch-text.ts';
import { ProgressLine } from '../terminal/progress.ts';
import { StatusLine } from '../terminal/status-line.ts';

/** Most starts are over by then, and worth no question to the server. */
const QUIET_MS = 400;

/** Tells on stderr how the start of a sandbox goes, until it is disposed of: what it waits for, how much of its image is there. */
export class StartWatch implements Disposable {
  readonly #status: StatusLine;
  readonly #over = new AbortController();

  constructor(client: Client, name: string, image: string) {
    this.#status = new StatusLine(`starting ${name} from ${image}`);
    // It is a courtesy: the start itself tells what goes wrong.
    this.#follow(client, name).catch(() => undefined);
  }

  note(text: string): void {
    this.#status.note(text);
  }

  [Symbol.dispose](): void {
    this.#over.abort();
    this.#status[Symbol.dispose]();
  }

  async #follow(client: Client, name: string): Promise<void> {
    const { signal } = this.#over;
    const lines = new ProgressLine();
    const show = process.stderr.isTTY
      ? (progress: FetchProgress) => this.#status.say(`${name}: ${fetchText(progress)}`)
      : lines.showFetch;
    const sandbox = await connectSoon(client, name, signal);
    for await (const progress of sandbox.startProgress({ signal })) show(progress);
  }
}

/** A server with much to do may not have written it down yet. */
async function connectSoon(client: Client, name: string, signal: AbortSignal): Promise<Sandbox> {
  for (;;) {
    await delay(QUIET_MS, undefined, { signal, ref: false });
    try {
      return await Sandbox.connect(name, { client, signal });
    } catch (error) {
      if (!SvcError.is(error, 'sandbox_not_found')) throw error;
    }
  }
}
