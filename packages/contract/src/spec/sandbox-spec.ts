import type { Static } from 'typebox';
import { Type } from '../schema/type.ts';
import { DEFAULT_METRICS_INTERVAL_MS } from './defaults.ts';
import { DEFAULT_LOG_LEVEL, LOG_LEVELS } from './log-levels.ts';
import { Mount, Patch } from './mounts.ts';
import { Network } from './network.ts';
import { RLIMIT_RESOURCES } from './rlimit-resources.ts';
import { Labels, Scripts, strictObject } from './strict.ts';
import { UNLIMITED } from './unlimited.ts';

const LIMIT = {
  minimum: 0,
  maximum: UNLIMITED,
  description: 'Every value from 2^53 on, u64 max among them, means unlimited',
};

export const Rlimit = strictObject({
  resource: Type.Enum([...RLIMIT_RESOURCES]),
  soft: Type.Integer(LIMIT),
  hard: Type.Integer(LIMIT),
});
export type Rlimit = Static<typeof Rlimit>;

export const EnvVar = strictObject({
  key: Type.String({ pattern: '^[^=\\u0000]+$', maxLength: 4096, description: 'A name without = and NUL' }),
  value: Type.String({ pattern: '^[^\\u0000]*$', maxLength: 131_072 }),
});

/** Limits, not reservations. */
export const Resources = strictObject({
  vcpus: Type.Integer({ minimum: 1, maximum: 255, default: 1 }),
  memory_mib: Type.Integer({ minimum: 16, maximum: 4_194_304, default: 512 }),
  disk_size_mib: Type.Optional(Type.Union([Type.Integer({ minimum: 16, maximum: 16_777_216 }), Type.Null()])),
});

const OptionalText = Type.Optional(
  Type.Union([Type.String({ maxLength: 4096, pattern: '^[^\\u0000]*$' }), Type.Null()]),
);
const OptionalWords = Type.Optional(
  Type.Union([
    Type.Array(Type.String({ maxLength: 131_072, pattern: '^[^\\u0000]*$' }), { maxItems: 1024 }),
    Type.Null(),
  ]),
);

const MAX_METRICS_INTERVAL_MS = 3_600_000;

export const Runtime = strictObject({
  workdir: OptionalText,
  shell: OptionalText,
  user: OptionalText,
  hostname: Type.Optional(
    Type.Union([
      Type.String({
        pattern: '^[A-Za-z0-9]([A-Za-z0-9.-]{0,62})$',
        description: '1–63 letters, digits, dots or hyphens; the first one a letter or digit',
      }),
      Type.Null(),
    ]),
  ),
  entrypoint: OptionalWords,
  cmd: OptionalWords,
  log_level: Type.Optional(
    Type.Union([Type.Enum([...LOG_LEVELS]), Type.Null()], {
      description: `What svc itself writes into the log of the sandbox (source system); null: ${DEFAULT_LOG_LEVEL}`,
    }),
  ),
  disable_metrics_sample: Type.Optional(
    Type.Boolean({ default: false, description: 'What the sandbox uses is not measured' }),
  ),
  metrics_sample_interval_ms: Type.Optional(
    // SAFETY: one thread measures all sandboxes of a host; the minimum keeps one sandbox from taking all of its time.
    Type.Union(
      [Type.Integer({ minimum: DEFAULT_METRICS_INTERVAL_MS, maximum: MAX_METRICS_INTERVAL_MS }), Type.Null()],
      {
        description: `Between two measurements; null: ${DEFAULT_METRICS_INTERVAL_MS}`,
      },
    ),
  ),
  scripts: Type.Optional(Scripts),
});

export const Init = strictObject({
  cmd: Type.String({ minLength: 1, maxLength: 4096 }),
  args: Type.Optional(Type.Array(Type.String())),
  env: Type.Optional(Type.Array(Type.Tuple([Type.String(), Type.String()]))),
});

/** A hundred years; for a longer time leave the field out. */
export const MAX_DURATION_SECS = 3_155_760_000;
const DurationSecs = Type.Optional(
  Type.Union([Type.Integer({ minimum: 1, maximum: MAX_DURATION_SECS }), Type.Null()]),
);

export const Lifecycle = strictObject({
  ephemeral: Type.Boolean({ default: false }),
  idle_timeout_secs: DurationSecs,
  max_duration_secs: DurationSecs,
});

/** The spec of a sandbox as callers send it. Defaults are filled in by `completeSpec`. */
export const SandboxSpec = strictObject({
  image: strictObject({
    type: Type.Literal('oci'),
    reference: Type.String({ minLength: 1, maxLength: 512 }),
  }),
  resources: Type.Optional(Type.Partial(Resources, { additionalProperties: false })),
  runtime: Type.Optional(Runtime),
  env: Type.Optional(Type.Array(EnvVar, { maxItems: 4096 })),
  labels: Type.Optional(Labels),
  rlimits: Type.Optional(Type.Array(Rlimit, { maxItems: 16 })),
  mounts: Type.Optional(Type.Array(Mount, { maxItems: 64 })),
  patches: Type.Optional(Type.Array(Patch, { maxItems: 256 })),
  network: Type.Optional(Network),
  init: Type.Optional(Type.Union([Init, Type.Null()])),
  pull_policy: Type.Optional(Type.Enum(['if_missing', 'always', 'never'])),
  security_profile: Type.Optional(Type.Enum(['default', 'restricted'])),
  lifecycle: Type.Optional(Type.Partial(Lifecycle, { additionalProperties: false })),
});
export type SandboxSpec = Static<typeof SandboxSpec>;
