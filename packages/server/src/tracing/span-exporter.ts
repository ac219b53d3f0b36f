import type { Logger } from 'pino';
import type { OtelSettings } from './otel-settings.ts';
import type { Attributes, FinishedSpan } from './span.ts';

/** Limit of the queue for the collector; more spans are dropped. */
const MAX_WAITING = 2048;
const MAX_BATCH = 512;
const TIMEOUT_MS = 10_000;
/** Timeout of the last export when the server stops. */
const LAST_TIMEOUT_MS = 2000;
/** Interval of log messages about dropped spans. */
const LOG_INTERVAL_MS = 60_000;
const NANOSECONDS_PER_MS = 1_000_000;
const STATUS_ERROR = 2;

/**
 * Sends spans to a collector in batches, by OTLP over HTTP as JSON. Requests never wait for it: spans that do not fit into the queue, or
 * that the collector refuses, are dropped and counted in the log. https://opentelemetry.io/docs/specs/otlp/#otlphttp
 */
export class SpanExporter {
  readonly #settings: OtelSettings;
  readonly #version: string;
  readonly #logger: Logger;
  readonly #timer: NodeJS.Timeout;
  #waiting: FinishedSpan[] = [];
  #sending: Promise<void> = Promise.resolve();
  #isSending = false;
  #dropped = 0;
  #loggedAt = Number.NEGATIVE_INFINITY;

  constructor(settings: OtelSettings, version: string, logger: Logger) {
    this.#settings = settings;
    this.#version = version;
    this.#logger = logger;
    this.#timer = setInterval(() => this.#send(), settings.everyMs).unref();
  }

  readonly add = (span: FinishedSpan): void => {
    if (this.#waiting.length >= MAX_WAITING) this.#drop(1);
    else this.#waiting.push(span);
    if (this.#waiting.length >= MAX_BATCH) this.#send();
  };

  /** Sends the queue, within a short timeout. */
  async close(): Promise<void> {
    clearInterval(this.#timer);
    const deadline = AbortSignal.timeout(LAST_TIMEOUT_MS);
    const late = new Promise<void>((resolve) => deadline.addEventListener('abort', () => resolve()));
    await Promise.race([this.#sending, late]);
    if (this.#waiting.length > 0 && !deadline.aborted) await this.#post(this.#take(), deadline);
  }

  #send(): void {
    if (this.#isSending || this.#waiting.length === 0) return;
    this.#isSending = true;
    this.#sending = this.#post(this.#take(), AbortSignal.timeout(TIMEOUT_MS)).finally(() => {
      this.#isSending = false;
    });
  }

  #take(): readonly FinishedSpan[] {
    const batch = this.#waiting.slice(0, MAX_BATCH);
    this.#waiting = this.#waiting.slice(MAX_BATCH);
    return batch;
  }

  async #post(spans: readonly FinishedSpan[], signal: AbortSignal): Promise<void> {
    const { url, headers } = this.#settings;
    try {
      const answer = await fetch(url, {
        method: 'POST',
        headers: { ...headers, 'content-type': 'application/json' },
        body: JSON.stringify(this.#describe(spans)),
        redirect: 'error',
        signal,
      });
      await answer.body?.cancel();
      if (!answer.ok) this.#drop(spans.length, `the collector answered ${answer.status}`);
    } catch (error) {
      this.#drop(spans.length, error instanceof Error ? error.message : String(error));
    }
  }

  #drop(count: number, reason = 'the collector is too slow'): void {
    this.#dropped += count;
    const now = performance.now();
    if (now - this.#loggedAt < LOG_INTERVAL_MS) return;
    this.#logger.warn({ dropped: this.#dropped, reason }, 'spans of traces were dropped');
    this.#loggedAt = now;
    this.#dropped = 0;
  }

  #describe(spans: readonly FinishedSpan[]): object {
    const scope = { name: 'svc', version: this.#version };
    const resource = { attributes: describeAttributes(this.#settings.resource) };
    return { resourceSpans: [{ resource, scopeSpans: [{ scope, spans: spans.map(describeSpan) }] }] };
  }
}

function describeSpan(span: FinishedSpan): object {
  const { traceId, spanId, parentSpanId, name, kind, failure } = span;
  return {
    traceId,
    spanId,
    ...(parentSpanId === null ? {} : { parentSpanId }),
    name,
    kind,
    startTimeUnixNano: nanoseconds(span.startMs),
    endTimeUnixNano: nanoseconds(span.endMs),
    attributes: describeAttributes(
      failure === null ? span.attributes : { ...span.attributes, 'error.type': failure },
    ),
    ...(failure === null ? {} : { status: { code: STATUS_ERROR, message: failure } }),
  };
}

/** As text, because a number does not hold so many digits. */
function nanoseconds(milliseconds: number): string {
  const whole = Math.floor(milliseconds);
  const rest = Math.floor((milliseconds - whole) * NANOSECONDS_PER_MS);
  return String(BigInt(whole) * BigInt(NANOSECONDS_PER_MS) + BigInt(rest));
}

function describeAttributes(attributes: Attributes): readonly object[] {
  return Object.entries(attributes).map(([key, value]) => ({ key, value: describeValue(value) }));
}

function describeValue(value: string | number | boolean): object {
  if (typeof value === 'string') return { stringValue: value };
  if (typeof value === 'boolean') return { boolValue: value };
  return Number.isInteger(value) ? { intValue: String(value) } : { doubleValue: value };
}
