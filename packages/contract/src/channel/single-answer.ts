import type { Message } from '../frames/frame.ts';
import { ChannelError } from './channel-error.ts';
import type { Session } from './connection.ts';
import { readMessage } from './payload-fields.ts';

/** A session that is answered by one message. */
export class SingleAnswer implements Session {
  readonly #answerType: string;
  readonly #answer = Promise.withResolvers<Message>();

  constructor(answerType: string) {
    this.#answerType = answerType;
    // The connection may end before anyone waits.
    this.#answer.promise.catch(() => undefined);
  }

  get answer(): Promise<Message> {
    return this.#answer.promise;
  }

  receive(message: Message): undefined {
    if (message.type === this.#answerType) this.#answer.resolve(message);
    else if (message.type === 'core.error') this.#answer.reject(refusal(message));
    return undefined;
  }

  lost(error: ChannelError): void {
    this.#answer.reject(error);
  }
}

/** What a `core.error` answer means. */
export function refusal(message: Message): ChannelError {
  const kind = readMessage(message.payload, 'kind');
  return new ChannelError(
    'refused',
    `The sandbox refused: ${readMessage(message.payload, 'message')} (${kind})`,
    { refusal: kind },
  );
}
