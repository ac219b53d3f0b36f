import type { FileAttributes, FileEntry } from '@svc/contract/channel';
import { uint64, type Field, type PacketReader } from './sftp-packet.ts';

const HAS = { size: 1, owner: 2, mode: 4, times: 8, extended: 0x80000000 } as const;
const MODE_BITS = 0o7777;
const MAX_UINT32 = 0xffffffff;
const HALF_YEAR_SECONDS = 182 * 24 * 60 * 60;
const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec'];
const KINDS: Readonly<Record<number, string>> = {
  0o010000: 'p',
  0o020000: 'c',
  0o040000: 'd',
  0o060000: 'b',
  0o100000: '-',
  0o120000: 'l',
  0o140000: 's',
};

export function readAttributes(reader: PacketReader): FileAttributes {
  const flags = reader.uint32();
  const size = (flags & HAS.size) === 0 ? {} : { size: reader.uint64() };
  const owner = (flags & HAS.owner) === 0 ? {} : { uid: reader.uint32(), gid: reader.uint32() };
  const mode = (flags & HAS.mode) === 0 ? {} : { mode: reader.uint32() & MODE_BITS };
  const times = (flags & HAS.times) === 0 ? {} : { atime: reader.uint32(), mtime: reader.uint32() };
  if ((flags & HAS.extended) !== 0) {
    // Extended attributes: clients do not use them; skipped to find the fields after them.
    for (let left = reader.uint32(); left > 0; left -= 1) {
      reader.bytes();
      reader.bytes();
    }
  }
  return { ...size, ...owner, ...mode, ...times };
}

export function encodeAttributes(entry: FileEntry): readonly Field[] {
  return [
    HAS.size | HAS.owner | HAS.mode | HAS.times,
    uint64(entry.size),
    clamp(entry.uid),
    clamp(entry.gid),
    clamp(entry.mode),
    clamp(entry.accessedSeconds ?? entry.modifiedSeconds ?? 0),
    clamp(entry.modifiedSeconds ?? 0),
  ];
}

/** A line in the format of `ls -l`, which clients show unchanged. */
export function describeEntry(entry: FileEntry, name: string, nowMs: number): string {
  const { mode, uid, gid, size, modifiedSeconds } = entry;
  const columns = [
    `${KINDS[mode & 0o170000] ?? '?'}${permissions(mode)}`,
    '  1',
    String(uid).padEnd(8),
    String(gid).padEnd(8),
    String(size).padStart(8),
    describeTime(modifiedSeconds ?? 0, nowMs),
  ];
  return `${columns.join(' ')} ${name}`;
}

function permissions(mode: number): string {
  const letters = Array.from('rwxrwxrwx', (letter, index) =>
    (mode & (0o400 >> index)) === 0 ? '-' : letter,
  );
  const special = [
    [0o4000, 2, 's'],
    [0o2000, 5, 's'],
    [0o1000, 8, 't'],
  ] as const;
  for (const [bit, index, letter] of special) {
    if ((mode & bit) !== 0) letters[index] = letters[index] === 'x' ? letter : letter.toUpperCase();
  }
  return letters.join('');
}

function describeTime(seconds: number, nowMs: number): string {
  const date = new Date(seconds * 1000);
  if (Number.isNaN(date.getTime())) return '?'.padStart(12);
  const day = `${MONTHS[date.getUTCMonth()] ?? ''} ${String(date.getUTCDate()).padStart(2)}`;
  const isRecent = Math.abs(nowMs / 1000 - seconds) < HALF_YEAR_SECONDS;
  const time = isRecent ? date.toISOString().slice(11, 16) : String(date.getUTCFullYear()).padStart(5);
  return `${day} ${time}`;
}

/** Values from a sandbox are untrusted. */
function clamp(value: number): number {
  return Math.min(Math.max(Math.trunc(value), 0), MAX_UINT32);
}
