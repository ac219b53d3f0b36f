import type { Payload } from '../frames/frame.ts';
import { ChannelError } from './channel-error.ts';

/** Longest text that is taken from the sandbox for logs and terminals. */
const MAX_TEXT = 4096;

/*
 * Reading a payload that a hostile sandbox may have made: each function gives a value of the promised type
 * or throws ChannelError `protocol`.
 */

export function readBytes(payload: Payload, key: string): Uint8Array {
  const value = own(payload, key);
  if (value instanceof Uint8Array) return value;
  throw wrong(key, 'bytes');
}

export function readText(payload: Payload, key: string): string {
  const value = own(payload, key);
  if (typeof value === 'string') return value;
  throw wrong(key, 'text');
}

/** For people to read: cut to a sane length, "" when it is missing. */
export function readMessage(payload: Payload, key: string): string {
  const value = own(payload, key);
  return typeof value === 'string' ? value.slice(0, MAX_TEXT) : '';
}

export function readOptionalMessage(payload: Payload, key: string): string | null {
  const value = own(payload, key);
  return typeof value === 'string' ? value.slice(0, MAX_TEXT) : null;
}

export function readInteger(payload: Payload, key: string): number {
  const value = asInteger(own(payload, key));
  if (value === undefined) throw wrong(key, 'an integer');
  return value;
}

export function readUint(payload: Payload, key: string): number {
  const value = readInteger(payload, key);
  if (value < 0) throw wrong(key, 'not negative');
  return value;
}

export function readOptionalInteger(payload: Payload, key: string): number | null {
  const value = own(payload, key);
  return value === undefined || value === null ? null : readInteger(payload, key);
}

export function readRecord(value: unknown, what: string): Payload {
  if (
    typeof value === 'object' &&
    value !== null &&
    !Array.isArray(value) &&
    !(value instanceof Uint8Array)
  ) {
    // Every object that is none of the above is a record of unknown values.
    return value as Payload;
  }
  throw wrong(what, 'a map');
}

export function readArray(value: unknown, what: string): readonly unknown[] {
  if (Array.isArray(value)) return value;
  throw wrong(what, 'a list');
}

/** Own keys only: a payload has the prototype of every object. */
export function own(payload: Payload, key: string): unknown {
  return Object.hasOwn(payload, key) ? payload[key] : undefined;
}

function asInteger(value: unknown): number | undefined {
  if (typeof value === 'bigint') {
    // Beyond 2^53 the nearest number is close enough for sizes and times, which is all that gets this large.
    return Number(value);
  }
  return typeof value === 'number' && Number.isInteger(value) ? value : undefined;
}

function wrong(key: string, expected: string): ChannelError {
  return new ChannelError('protocol', `The sandbox sent an answer whose ${key} is not ${expected}`);
}
