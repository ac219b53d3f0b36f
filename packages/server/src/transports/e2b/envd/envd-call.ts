import type { ChannelClient } from '@svc/contract';
import type { SandboxCall } from '../wire/admit-sandbox.ts';
import type { E2bParts } from '../wire/e2b-parts.ts';
import { requireAccount, type Account } from './accounts.ts';

const DEFAULT_KEEP_ALIVE_MS = 90_000;
const MS_PER_SECOND = 1000;

interface EnvdHeaders {
  readonly authorization?: string | undefined;
  readonly 'connect-timeout-ms'?: unknown;
  readonly 'keepalive-ping-interval'?: unknown;
}

/** A call to processes or files of a running sandbox. */
export class EnvdCall {
  readonly parts: E2bParts;
  readonly of: SandboxCall;
  /** After this time the client gives up; null: never. */
  readonly timeoutMs: number | null;
  readonly keepAliveMs: number;
  /** Null: the client named no user. */
  readonly user: string | null;
  #lasting: AbortSignal | undefined;

  constructor(parts: E2bParts, of: SandboxCall, headers: EnvdHeaders) {
    this.parts = parts;
    this.of = of;
    this.timeoutMs = positive(headers['connect-timeout-ms']);
    const seconds = positive(headers['keepalive-ping-interval']);
    this.keepAliveMs = seconds === null ? DEFAULT_KEEP_ALIVE_MS : seconds * MS_PER_SECOND;
    this.user = userOf(headers.authorization);
  }

  get sandboxId(): string {
    return this.of.sandbox.id;
  }

  get signal(): AbortSignal {
    return this.#lasting ?? this.of.call.signal;
  }

  /** The same for work that goes on when the client has its answer, until this signal. */
  lasting(signal: AbortSignal): EnvdCall {
    const call = new EnvdCall(this.parts, this.of, {});
    call.#lasting = signal;
    return call;
  }

  async channel(): Promise<ChannelClient> {
    return await this.parts.channels.get(this.sandboxId);
  }

  async account(): Promise<Account> {
    return requireAccount(await this.parts.files.users(this.sandboxId, this.signal), this.user);
  }
}

function positive(header: unknown): number | null {
  const number = Number(header);
  return Number.isSafeInteger(number) && number > 0 ? number : null;
}

/** The name in `Basic name:`; E2B's clients send no password. */
function userOf(authorization: string | undefined): string | null {
  const encoded = /^Basic +(\S+)$/i.exec(authorization ?? '')?.[1];
  if (encoded === undefined) return null;
  const [name = ''] = Buffer.from(encoded, 'base64').toString('utf8').split(':');
  return name === '' ? null : name;
}
