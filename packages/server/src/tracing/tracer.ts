import { randomBytes } from 'node:crypto';
import type { OtelSettings } from './otel-settings.ts';
import { Span, SPAN_KIND, type FinishedSpan } from './span.ts';

/** https://www.w3.org/TR/trace-context/ */
const TRACEPARENT = /^(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/;
const SAMPLED = 1;
/** Sampling is decided by the last 7 bytes of a trace id, so that all services of a trace decide alike. */
const RANDOM_DIGITS = 14;
const RANDOM_BITS = 56;

/** Begins a span for each request that is to be recorded. */
export class Tracer {
  readonly #sampler: OtelSettings['sampler'];
  readonly #onEnd: (span: FinishedSpan) => void;

  constructor({ sampler }: Pick<OtelSettings, 'sampler'>, onEnd: (span: FinishedSpan) => void) {
    this.#sampler = sampler;
    this.#onEnd = onEnd;
  }

  /** `traceparent`: the trace context of the request. Undefined: the request is not recorded. */
  begin(name: string, traceparent: string | string[] | undefined): Span | undefined {
    const [, callerTrace, parentSpanId = null, flags = '0'] =
      TRACEPARENT.exec(typeof traceparent === 'string' ? traceparent : '') ?? [];
    const { followsParent, ratio } = this.#sampler;
    const traceId = callerTrace ?? randomBytes(16).toString('hex');
    const isSampled =
      callerTrace !== undefined && followsParent
        ? (Number.parseInt(flags, 16) & SAMPLED) !== 0
        : isWithin(traceId, ratio);
    if (!isSampled) return undefined;
    return new Span({ traceId, parentSpanId }, { name, kind: SPAN_KIND.server }, this.#onEnd);
  }
}

function isWithin(traceId: string, ratio: number): boolean {
  return Number.parseInt(traceId.slice(-RANDOM_DIGITS), 16) / 2 ** RANDOM_BITS < ratio;
}
