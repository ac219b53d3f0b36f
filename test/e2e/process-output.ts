import assert from 'node:assert/strict';
import type { Process } from '@svc/contract/rest';

export type Stream = 'stdout' | 'stderr';

/** What a client of the output of a process has, kept over as many connections as it takes. */
export class OutputReader {
  readonly #url: string;
  readonly #query: string;
  readonly bytes: Record<Stream, Buffer[]> = { stdout: [], stderr: [] };
  readonly dropped: { readonly stream: Stream; readonly from: number; readonly to: number }[] = [];
  readonly #next: Record<Stream, number> = { stdout: 0, stderr: 0 };
  lastEventId: string | undefined;
  /** The process as the last event tells it. */
  end: Process | undefined;

  constructor(url: string, query = 'follow=true') {
    this.#url = url;
    this.#query = query;
  }

  text(stream: Stream): string {
    return Buffer.concat(this.bytes[stream]).toString();
  }

  /** Begins, or goes on where it was. Ends with the stream, or when the connection breaks. */
  async read(base = this.#url): Promise<void> {
    const headers = this.lastEventId === undefined ? {} : { 'last-event-id': this.lastEventId };
    const response = await fetch(`${base}?${this.#query}`, { headers });
    assert.equal(response.status, 200, response.status === 200 ? '' : await response.text());
    let text = '';
    try {
      for await (const chunk of response.body ?? []) {
        text += Buffer.from(chunk).toString('latin1');
        const blocks = text.split('\n\n');
        text = blocks.pop() ?? '';
        for (const block of blocks) this.#take(block);
      }
    } catch (error) {
      // The server was killed.
      if (!(error instanceof TypeError)) throw error;
    }
  }

  /** Each stream must go on exactly where it was. */
  #take(block: string): void {
    const fields = new Map(
      block.split('\n').map((line) => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 2)]),
    );
    const event = fields.get('event');
    if (event === undefined) return;
    const data = JSON.parse(Buffer.from(fields.get('data') ?? '', 'latin1').toString());
    const stream: Stream = data.stream;
    if (event === 'end') this.end = data;
    else if (event === 'dropped') {
      assert.equal(data.from, this.#next[stream], 'no byte is missing and none comes twice');
      this.#next[stream] = data.to;
      this.dropped.push(data);
    } else {
      assert.equal(data.offset, this.#next[stream], 'no byte is missing and none comes twice');
      const bytes = Buffer.from(data.data, 'base64');
      this.bytes[stream].push(bytes);
      this.#next[stream] += bytes.length;
    }
    this.lastEventId = fields.get('id') ?? this.lastEventId;
  }
}
