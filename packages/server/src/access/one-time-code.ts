import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';

/** As every authenticator app expects them (RFC 6238): SHA-1, 6 digits, 30 s. */
const STEP_SECONDS = 30;
const DIGITS = 6;
const SECRET_BYTES = 20;
/** Allows for clocks that differ and for slow typing. */
const STEPS_BEFORE = 1;
const STEPS_AFTER = 1;
const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567';
const BITS = 5;

/** In Base32, so that people can type it. */
export function newCodeSecret(): string {
  return toBase32(randomBytes(SECRET_BYTES));
}

/** What the QR code for an authenticator app holds. */
export function codeUri(secret: string, issuer: string, account: string): string {
  const label = `${encodeURIComponent(issuer)}:${encodeURIComponent(account)}`;
  return `otpauth://totp/${label}?secret=${secret}&issuer=${encodeURIComponent(issuer)}`;
}

/** The time step that the code belongs to; undefined when it matches no step near `nowMs`. */
export function stepOfCode(secret: string, code: string, nowMs: number): number | undefined {
  const now = Math.floor(nowMs / 1000 / STEP_SECONDS);
  for (let step = now + STEPS_AFTER; step >= now - STEPS_BEFORE; step -= 1)
    if (isSame(codeOfStep(secret, step), code)) return step;
  return undefined;
}

export function codeOfStep(secret: string, step: number): string {
  const counter = Buffer.alloc(8);
  counter.writeBigUInt64BE(BigInt(step));
  const mac = createHmac('sha1', fromBase32(secret)).update(counter).digest();
  const offset = (mac.at(-1) ?? 0) & 0x0f;
  const number = mac.readUInt32BE(offset) & 0x7fff_ffff;
  return String(number % 10 ** DIGITS).padStart(DIGITS, '0');
}

function isSame(a: string, b: string): boolean {
  const [left, right] = [Buffer.from(a), Buffer.from(b)];
  return left.length === right.length && timingSafeEqual(left, right);
}

function toBase32(bytes: Uint8Array): string {
  const bits = [...bytes].map((byte) => byte.toString(2).padStart(8, '0')).join('');
  const groups = bits.match(/.{1,5}/g) ?? [];
  return groups.map((group) => ALPHABET[Number.parseInt(group.padEnd(BITS, '0'), 2)]).join('');
}

function fromBase32(text: string): Buffer {
  const bits = text
    .split('')
    .map((letter) => ALPHABET.indexOf(letter).toString(2).padStart(BITS, '0'))
    .join('');
  return Buffer.from((bits.match(/.{8}/g) ?? []).map((byte) => Number.parseInt(byte, 2)));
}
