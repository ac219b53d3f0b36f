import { setTimeout as delay } from 'node:timers/promises';
import { Sandbox, SvcError, type Client, type FetchProgress } from '@svc/sdk';
import { fetchText } from '../terminal/fetch-text.ts';
import { ProgressLine } from '../terminal/progress.ts';
import { StatusLine } from '../terminal/status-line.ts';

/** Most starts are over by then without a further request. */
const QUIET_MS = 400;

/** Shows the progress of a start on stderr until it is disposed of: the current step, and how much of the image is there. */
export class StartWatch implements Disposable {
  readonly #status: StatusLine;
  readonly #over = new AbortController();

  constructor(client: Client, name: string, image: string) {
    this.#status = new StatusLine(`starting ${name} from ${image}`);
    // Errors of the progress are dropped: the start itself reports failures.
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

/** A busy server may not have stored the sandbox yet. */
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
