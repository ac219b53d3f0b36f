import { SvcError } from '../svc-error.ts';

/** One server-sent event. */
export interface StreamEvent {
  readonly event: string;
  readonly data: unknown;
  /** A client sends it to resume after this event. */
  readonly id: string | null;
}

/** Longer events are refused: the server sends none. */
const MAX_EVENT_LENGTH = 16 * 1024 * 1024;

/** Parses `text/event-stream`. Comments, which keep the connection alive, are left out. */
export async function* readServerEvents(
  chunks: AsyncIterable<Uint8Array>,
): AsyncGenerator<StreamEvent, void> {
  const decoder = new TextDecoder();
  let text = '';
  for await (const chunk of chunks) {
    text += decoder.decode(chunk, { stream: true }).replaceAll('\r\n', '\n');
    for (let end = text.indexOf('\n\n'); end >= 0; end = text.indexOf('\n\n')) {
      const event = readEvent(text.slice(0, end));
      text = text.slice(end + 2);
      if (event !== undefined) yield event;
    }
    if (text.length > MAX_EVENT_LENGTH) throw new SvcError('internal', 'The server sent an endless event');
  }
}

function readEvent(block: string): StreamEvent | undefined {
  let event = 'message';
  let id: string | null = null;
  const data: string[] = [];
  for (const line of block.split('\n')) {
    const [, name = '', value = ''] = /^([^:]*):? ?(.*)$/.exec(line) ?? [];
    if (name === 'event') event = value;
    else if (name === 'id') id = value;
    else if (name === 'data') data.push(value);
  }
  return data.length === 0 ? undefined : { event, id, data: JSON.parse(data.join('\n')) as unknown };
}
