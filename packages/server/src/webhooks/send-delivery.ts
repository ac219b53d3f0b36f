import { OutboundError, sendOutbound, type OutboundRules } from '../outbound/send-outbound.ts';
import type { Sealer } from '../secrets/sealer.ts';
import type { DeliveryAttempt, DeliveryRecord } from '../store/webhook-deliveries.ts';
import { webhookContext, type WebhookRecord } from '../store/webhooks.ts';
import { signMessage } from './sign-message.ts';

/** Statuses whose `Retry-After` counts: too many requests, and unavailable. */
const WAITING: ReadonlySet<number> = new Set([429, 503]);
const MAX_REST_MS = 24 * 60 * 60 * 1000;
/** How much of an answer is stored. */
const MAX_RESPONSE_BYTES = 1024;
// oxlint-disable-next-line no-control-regex -- What a terminal would act on, and databases do not agree about.
const CONTROL = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g;

export interface SendParts {
  readonly sealer: Sealer;
  readonly outbound: OutboundRules;
  readonly timeoutMs: number;
}

/** The id by which receivers recognize a delivery; the same for each attempt. */
export function messageIdOf(deliveryId: string): string {
  return `msg_${deliveryId.replaceAll('-', '')}`;
}

/** The outcome of an attempt, and the pause that its receiver asks for. */
export interface SentAttempt {
  readonly attempt: DeliveryAttempt;
  readonly restMs: number;
}

/** Makes one attempt. Redirects are not followed: they are failures like every status that is not 2xx. */
export async function sendDelivery(
  { sealer, outbound, timeoutMs }: SendParts,
  webhook: WebhookRecord,
  delivery: DeliveryRecord,
  signal: AbortSignal,
): Promise<SentAttempt> {
  const sentAt = new Date();
  const startedAt = performance.now();
  const message = { id: messageIdOf(delivery.id), sentAt, body: delivery.body };
  const end = (rest: Omit<DeliveryAttempt, 'at' | 'latencyMs'>, restMs = 0) => {
    const latencyMs = Math.round(performance.now() - startedAt);
    return { attempt: { at: sentAt.toISOString(), latencyMs, ...rest }, restMs };
  };
  try {
    const answer = await sendOutbound(outbound, {
      url: new URL(webhook.url),
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        ...signMessage(message, secretsOf(sealer, webhook, sentAt)),
      },
      body: delivery.body,
      timeoutMs,
      maxAnswerBytes: MAX_RESPONSE_BYTES,
      signal,
    });
    const { status } = answer;
    const error = status >= 200 && status < 300 ? null : failureOf(status);
    const restMs = WAITING.has(status) ? restOf(answer.headers['retry-after'], Date.now()) : 0;
    return end({ status, error, response: toText(answer.body) }, restMs);
  } catch (error) {
    if (signal.aborted || !(error instanceof OutboundError)) throw error;
    return end({ status: null, error: error.message, response: '' });
  }
}

/** Parses `Retry-After`, in seconds or as a date; bounded, because the receiver chooses it. */
export function restOf(header: string | undefined, nowMs: number): number {
  const text = header?.trim() ?? '';
  const wantedMs = /^\d{1,9}$/.test(text) ? Number(text) * 1000 : Date.parse(text) - nowMs;
  return Number.isFinite(wantedMs) ? Math.min(Math.max(wantedMs, 0), MAX_REST_MS) : 0;
}

function secretsOf(sealer: Sealer, { id, sealedSecret, previous }: WebhookRecord, now: Date): string[] {
  const sealed = [sealedSecret];
  if (previous !== null && now.toISOString() < previous.until) sealed.push(previous.sealedSecret);
  return sealed.map((each) => sealer.open(each, webhookContext(id)));
}

function failureOf(status: number): string {
  return status >= 300 && status < 400
    ? `it answered ${status}, which leads elsewhere; give the address that answers itself`
    : `it answered ${status}`;
}

function toText(bytes: Buffer): string {
  return bytes.toString('utf8').replaceAll(CONTROL, '\uFFFD');
}
