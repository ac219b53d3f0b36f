import { ConnectError } from '../wire/connect-error.ts';

/** Fields of messages in the JSON of protobuf: an absent field has the default of its type. */
export type Message = Readonly<Record<string, unknown>>;

export function messageIn(message: Message, field: string): Message | undefined {
  const value = message[field] ?? undefined;
  if (value === undefined) return undefined;
  if (typeof value === 'object' && !Array.isArray(value)) return value as Message;
  throw wrong(field, 'an object');
}

export function textIn(message: Message, field: string): string {
  const value = message[field] ?? '';
  if (typeof value === 'string') return value;
  throw wrong(field, 'a text');
}

export function textsIn(message: Message, field: string): readonly string[] {
  const value = message[field] ?? [];
  if (Array.isArray(value) && value.every((each) => typeof each === 'string')) return value;
  throw wrong(field, 'a list of texts');
}

export function mapIn(message: Message, field: string): Readonly<Record<string, string>> {
  const value = messageIn(message, field) ?? {};
  if (Object.values(value).every((each) => typeof each === 'string'))
    return value as Readonly<Record<string, string>>;
  throw wrong(field, 'an object of texts');
}

export function booleanIn(message: Message, field: string, otherwise = false): boolean {
  const value = message[field] ?? otherwise;
  if (typeof value === 'boolean') return value;
  throw wrong(field, 'true or false');
}

/** Numbers of 64 bits come as texts. */
export function wholeIn(message: Message, field: string): number {
  const value = Number(message[field] ?? 0);
  if (Number.isSafeInteger(value) && value >= 0) return value;
  throw wrong(field, 'a whole number');
}

export function bytesIn(message: Message, field: string): Buffer {
  return Buffer.from(textIn(message, field), 'base64');
}

function wrong(field: string, kind: string): ConnectError {
  return new ConnectError('invalid_argument', `${field} must be ${kind}`);
}
