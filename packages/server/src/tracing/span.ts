import { AsyncLocalStorage } from 'node:async_hooks';
import { randomBytes } from 'node:crypto';

/** The numbers of OTLP. */
export const SPAN_KIND = { internal: 1, server: 2, client: 3 } as const;

export type Attributes = Readonly<Record<string, string | number | boolean>>;

/** A span that has ended. */
export interface FinishedSpan {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId: string | null;
  readonly name: string;
  readonly kind: number;
  readonly startMs: number;
  readonly endMs: number;
  readonly attributes: Attributes;
  /** Null: success. Only an error code, because a message may contain a secret. */
  readonly failure: string | null;
}

/** The trace, and the span that the next one is a child of. */
export interface Trace {
  readonly traceId: string;
  readonly parentSpanId: string | null;
}

const active = new AsyncLocalStorage<Span>();

/** The span of the current work; undefined when it is not recorded. */
export function activeSpan(): Span | undefined {
  return active.getStore();
}

/** A timed operation, passed to `onEnd` when it has ended. Names and attributes are our own words and ids, never text of a caller. */
export class Span {
  readonly traceId: string;
  readonly spanId = randomBytes(8).toString('hex');
  readonly #onEnd: (span: FinishedSpan) => void;
  readonly #parentSpanId: string | null;
  readonly #kind: number;
  readonly #startMs: number;
  #name: string;
  #attributes: Attributes;
  #isOver = false;

  constructor(
    { traceId, parentSpanId }: Trace,
    begun: {
      readonly name: string;
      readonly kind: number;
      readonly attributes?: Attributes;
      readonly startMs?: number;
    },
    onEnd: (span: FinishedSpan) => void,
  ) {
    this.traceId = traceId;
    this.#parentSpanId = parentSpanId;
    this.#onEnd = onEnd;
    this.#name = begun.name;
    this.#kind = begun.kind;
    this.#attributes = begun.attributes ?? {};
    this.#startMs = begun.startMs ?? nowMs();
  }

  /** `durationMs`: sets its start to that long ago. */
  child(
    name: string,
    options: { readonly kind?: number; readonly attributes?: Attributes; readonly durationMs?: number } = {},
  ): Span {
    const { kind = SPAN_KIND.internal, attributes = {}, durationMs = 0 } = options;
    const begun = { name, kind, attributes, startMs: nowMs() - durationMs };
    return new Span({ traceId: this.traceId, parentSpanId: this.spanId }, begun, this.#onEnd);
  }

  rename(name: string): void {
    this.#name = name;
  }

  note(attributes: Attributes): void {
    this.#attributes = { ...this.#attributes, ...attributes };
  }

  /** Runs `work` with this as the active span. */
  run<Result>(work: () => Result): Result {
    return active.run(this, work);
  }

  /** A second call has no effect. */
  end(failure: string | null = null): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#onEnd({
      traceId: this.traceId,
      spanId: this.spanId,
      parentSpanId: this.#parentSpanId,
      name: this.#name,
      kind: this.#kind,
      startMs: this.#startMs,
      endMs: nowMs(),
      attributes: this.#attributes,
      failure,
    });
  }
}

/** Milliseconds since 1970, with fractions. */
function nowMs(): number {
  return performance.timeOrigin + performance.now();
}
