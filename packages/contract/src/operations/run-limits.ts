import { Type } from '../schema/type.ts';

/** Longer timeouts are cut to this: one client sends nanoseconds. */
export const MAX_TIMEOUT_SECONDS = 24 * 60 * 60;

export const TimeoutSeconds = Type.Optional(
  Type.Union([Type.Number({ exclusiveMinimum: 0 }), Type.Null()], {
    description: 'Seconds after which it is ended; at most 24 hours',
  }),
);

export const Truncated = Type.Optional(
  Type.Boolean({ description: 'True when output was cut; absent when it is complete' }),
);

/** @returns milliseconds; 24 hours when no timeout was given. */
export function timeoutMsOf(timeoutSeconds: number | null | undefined): number {
  return Math.ceil(Math.min(timeoutSeconds ?? MAX_TIMEOUT_SECONDS, MAX_TIMEOUT_SECONDS) * 1000);
}
