import assert from 'node:assert/strict';

export function isUuid(value: unknown): void {
  assert.match(String(value), /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/);
}

/** RFC 3339 in UTC. */
export function isTimestamp(value: unknown): void {
  assert.match(String(value), /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d+)?Z$/);
}
