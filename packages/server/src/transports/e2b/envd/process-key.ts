import { randomUUID } from 'node:crypto';
import type { ChannelClient, DetachedState } from '@svc/contract';
import { ConnectError } from '../wire/connect-error.ts';
import { messageIn, textIn, wholeIn, type Message } from './message-fields.ts';

/** Keys of processes that E2B's clients started; others are none of theirs. The tag is part of the key, so that nothing is remembered. */
const PREFIX = 'e2b-';
const MAX_TAG_BYTES = 120;
const WITH_STDIN = 'i';
const WITHOUT_STDIN = 'n';

export function newProcessKey({
  tag,
  hasStdin,
}: {
  readonly tag: string;
  readonly hasStdin: boolean;
}): string {
  if (Buffer.byteLength(tag) > MAX_TAG_BYTES)
    throw new ConnectError('invalid_argument', `tag must have at most ${MAX_TAG_BYTES} bytes`);
  const input = hasStdin ? WITH_STDIN : WITHOUT_STDIN;
  return `${PREFIX}${input}-${randomUUID()}-${Buffer.from(tag).toString('base64url')}`;
}

export function isProcessKey(key: string): boolean {
  return key.startsWith(PREFIX);
}

export function takesStdin(key: string): boolean {
  return key.startsWith(`${PREFIX}${WITH_STDIN}`);
}

/** Empty: the process has none. */
export function tagOf(key: string): string {
  const [, , ...parts] = key.split('-');
  // The id between has four hyphens.
  return Buffer.from(parts.slice(5).join('-'), 'base64url').toString('utf8');
}

/** The process that a message selects by its pid or tag. @throws ConnectError `not_found` */
export async function requireProcess(
  channel: ChannelClient,
  message: Message,
  { mayHaveEnded = false, signal }: { readonly mayHaveEnded?: boolean; readonly signal: AbortSignal },
): Promise<DetachedState> {
  const selector = messageIn(message, 'process') ?? {};
  const tag = textIn(selector, 'tag');
  const pid = wholeIn(selector, 'pid');
  const states = (await channel.detached.list(signal)).filter(({ key }) => isProcessKey(key));
  const matching = states.filter((state) => (tag === '' ? state.pid === pid : tagOf(state.key) === tag));
  const found = matching.find(({ end }) => end === null) ?? (mayHaveEnded ? matching.at(-1) : undefined);
  if (found !== undefined) return found;
  throw processNotFound(message);
}

/** The error for a message that selects a process which is gone. */
export function processNotFound(message: Message): ConnectError {
  const selector = messageIn(message, 'process') ?? {};
  const tag = textIn(selector, 'tag');
  const what = tag === '' ? `pid ${wholeIn(selector, 'pid')}` : `tag ${tag}`;
  return new ConnectError('not_found', `process with ${what} not found`);
}
