/**
 * Settings of tracing, from OpenTelemetry's variables. https://opentelemetry.io/docs/specs/otel/configuration/sdk-environment-variables/
 */
export interface OtelSettings {
  /** An endpoint for OTLP over HTTP with JSON. */
  readonly url: string;
  /** May hold credentials: never logged. */
  readonly headers: Readonly<Record<string, string>>;
  /** Attributes of the server, among them `service.name`. */
  readonly resource: Readonly<Record<string, string>>;
  readonly sampler: Sampler;
  readonly everyMs: number;
}

export interface Sampler {
  /** A caller with a trace context decides whether its trace is recorded. */
  readonly followsParent: boolean;
  /** Sampling ratio of traces that begin here, from 0 to 1. */
  readonly ratio: number;
}

type Environment = Readonly<Record<string, string | undefined>>;

const EVERY_MS = 5000;
const PROTOCOL = 'http/json';

/** Null: no traces. Unsupported settings are added to `problems`. */
export function readOtelSettings(env: Environment, problems: string[]): OtelSettings | null {
  const read = (name: string) => (env[name] === '' ? undefined : env[name]);
  const url = readUrl(read, problems);
  if (url === null || read('OTEL_SDK_DISABLED')?.toLowerCase() === 'true') return null;
  const exporter = read('OTEL_TRACES_EXPORTER') ?? 'otlp';
  if (exporter === 'none') return null;
  if (exporter !== 'otlp') problems.push(`OTEL_TRACES_EXPORTER must be otlp or none, not ${exporter}`);
  const protocol =
    read('OTEL_EXPORTER_OTLP_TRACES_PROTOCOL') ?? read('OTEL_EXPORTER_OTLP_PROTOCOL') ?? PROTOCOL;
  if (protocol !== PROTOCOL)
    problems.push(`OTEL_EXPORTER_OTLP_PROTOCOL must be ${PROTOCOL}, which collectors take on port 4318`);
  const named = readPairs('OTEL_RESOURCE_ATTRIBUTES', read, problems);
  return {
    url,
    headers: {
      ...readPairs('OTEL_EXPORTER_OTLP_HEADERS', read, problems),
      ...readPairs('OTEL_EXPORTER_OTLP_TRACES_HEADERS', read, problems),
    },
    resource: { ...named, 'service.name': read('OTEL_SERVICE_NAME') ?? named['service.name'] ?? 'svc' },
    sampler: readSampler(read, problems),
    everyMs: readDelay(read('OTEL_BSP_SCHEDULE_DELAY'), problems),
  };
}

type Read = (name: string) => string | undefined;

function readUrl(read: Read, problems: string[]): string | null {
  const own = read('OTEL_EXPORTER_OTLP_TRACES_ENDPOINT');
  const base = read('OTEL_EXPORTER_OTLP_ENDPOINT');
  const text = own ?? (base === undefined ? undefined : `${base.replace(/\/+$/, '')}/v1/traces`);
  if (text === undefined) return null;
  if (URL.canParse(text) && /^https?:$/.test(new URL(text).protocol)) return text;
  // It may hold a password.
  problems.push('OTEL_EXPORTER_OTLP_ENDPOINT must be like http://127.0.0.1:4318');
  return null;
}

/** `name=value,name=value`, both as in URLs. */
function readPairs(name: string, read: Read, problems: string[]): Record<string, string> {
  const pairs: Record<string, string> = {};
  for (const pair of (read(name) ?? '').split(',').filter((part) => part.trim() !== '')) {
    const [, key = '', value = ''] = /^\s*([^=\s]+)\s*=\s*(.*?)\s*$/.exec(pair) ?? [];
    try {
      if (key === '') throw new Error('no name');
      pairs[decodeURIComponent(key)] = decodeURIComponent(value);
    } catch {
      problems.push(`${name} must be like name=value,name=value`);
    }
  }
  return pairs;
}

function readSampler(read: Read, problems: string[]): Sampler {
  const name = read('OTEL_TRACES_SAMPLER') ?? 'parentbased_always_on';
  const [, parent, kind] = /^(parentbased_)?(always_on|always_off|traceidratio)$/.exec(name) ?? [];
  if (kind === undefined) {
    problems.push(
      `OTEL_TRACES_SAMPLER must be always_on, always_off or traceidratio, or one of them behind parentbased_, not ${name}`,
    );
  }
  const ratio = { always_on: 1, always_off: 0 }[kind ?? ''] ?? readRatio(read, problems);
  return { followsParent: parent !== undefined, ratio };
}

function readRatio(read: Read, problems: string[]): number {
  const text = read('OTEL_TRACES_SAMPLER_ARG') ?? '1';
  const ratio = Number(text);
  if (ratio >= 0 && ratio <= 1) return ratio;
  problems.push(`OTEL_TRACES_SAMPLER_ARG must be a number from 0 to 1, not ${text}`);
  return 1;
}

function readDelay(text: string | undefined, problems: string[]): number {
  const everyMs = Number(text ?? EVERY_MS);
  if (Number.isInteger(everyMs) && everyMs > 0) return everyMs;
  problems.push(`OTEL_BSP_SCHEDULE_DELAY must be a number of milliseconds, not ${text}`);
  return EVERY_MS;
}
