import type { EventType } from '@svc/contract/rest';
import { requireKnownOptions } from '../client/known-options.ts';
import { SvcError } from '../svc-error.ts';
import type { AuditEvent } from './events.ts';

const SECRET_PREFIX = 'whsec_';
const VERSION_PREFIX = 'v1,';
const DEFAULT_TOLERANCE_SECS = 5 * 60;

/** The body of a webhook message: an event, or a test. */
export type WebhookMessage =
  | {
      readonly type: EventType;
      /** When it happened; RFC 3339. */
      readonly timestamp: string;
      readonly data: {
        readonly event_id: string;
        readonly org_id: string;
        /** Number of the event in the organization, to sort events that arrive out of order. */
        readonly sequence: number;
        readonly category: string;
        readonly actor: AuditEvent['actor'];
        readonly payload: Readonly<Record<string, unknown>>;
      };
    }
  | {
      readonly type: 'webhook_test';
      readonly timestamp: string;
      readonly data: { readonly webhook_id: string };
    };

/** Of a `Request`, or of Node's. */
export type WebhookHeaders = Headers | Readonly<Record<string, string | readonly string[] | undefined>>;

export interface VerifyOptions {
  /** How old, or how far in the future, a message may be; 300 unless given. */
  readonly toleranceSecs?: number;
  /** Instead of the clock. */
  readonly now?: Date;
}

/**
 * Verifies that a message was signed with the secret (or with one of several, during a rotation) and that it is recent, which
 * prevents replays. Signatures are compared in constant time. `body` is the raw body, not a parsed one.
 * @throws SvcError `forbidden`: answer 4xx and ignore the message
 */
export async function verifyWebhook(
  secret: string | readonly string[],
  headers: WebhookHeaders,
  body: string | Uint8Array,
  options: VerifyOptions = {},
): Promise<WebhookMessage> {
  requireKnownOptions(options, { toleranceSecs: true, now: true });
  const { toleranceSecs = DEFAULT_TOLERANCE_SECS, now = new Date() } = options;
  const id = requireHeader(headers, 'webhook-id');
  const timestamp = requireHeader(headers, 'webhook-timestamp');
  const signatures = requireHeader(headers, 'webhook-signature').split(' ');
  const ageSecs = now.getTime() / 1000 - (/^\d{1,15}$/.test(timestamp) ? Number(timestamp) : Number.NaN);
  if (!(Math.abs(ageSecs) <= toleranceSecs))
    throw refused(`its time is not within ${toleranceSecs} s of the clock here`);
  const bytes = typeof body === 'string' ? new TextEncoder().encode(body) : body;
  const signed = joinBytes(new TextEncoder().encode(`${id}.${timestamp}.`), bytes);
  for (const each of [secret].flat()) {
    const key = await importSecret(each);
    for (const signature of signatures) if (await isSignature(key, signature, signed)) return parse(bytes);
  }
  throw refused('no signature of it was made with the secret');
}

type HmacKey = Awaited<ReturnType<typeof crypto.subtle.importKey>>;

async function isSignature(
  key: HmacKey,
  signature: string,
  signed: Uint8Array<ArrayBuffer>,
): Promise<boolean> {
  if (!signature.startsWith(VERSION_PREFIX)) return false;
  const bytes = fromBase64(signature.slice(VERSION_PREFIX.length));
  return bytes !== null && (await crypto.subtle.verify('HMAC', key, bytes, signed));
}

async function importSecret(secret: string): Promise<HmacKey> {
  const bytes = fromBase64(secret.startsWith(SECRET_PREFIX) ? secret.slice(SECRET_PREFIX.length) : secret);
  if (bytes === null || bytes.length === 0)
    throw new SvcError('invalid_request', 'the secret of a webhook begins with whsec_, as it was shown');
  return await crypto.subtle.importKey('raw', bytes, { name: 'HMAC', hash: 'SHA-256' }, false, ['verify']);
}

function requireHeader(headers: WebhookHeaders, name: string): string {
  const found = headers instanceof Headers ? headers.get(name) : headers[name];
  if (typeof found === 'string' && found !== '') return found;
  throw refused(`it has no header ${name}`);
}

function joinBytes(first: Uint8Array, second: Uint8Array): Uint8Array<ArrayBuffer> {
  const joined = new Uint8Array(first.length + second.length);
  joined.set(first);
  joined.set(second, first.length);
  return joined;
}

/** Null: it is none. */
function fromBase64(text: string): Uint8Array<ArrayBuffer> | null {
  try {
    return Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
  } catch {
    return null;
  }
}

/** The signature proves that the server wrote it, so it has the documented shape. */
function parse(bytes: Uint8Array): WebhookMessage {
  return JSON.parse(new TextDecoder().decode(bytes)) as WebhookMessage;
}

function refused(why: string): SvcError {
  return new SvcError('forbidden', `This is no message of the webhook: ${why}`);
}
