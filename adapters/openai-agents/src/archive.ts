import {
  SandboxArchiveError,
  type ResolvedSandboxArchiveLimits,
  type SandboxArchiveLimits,
} from '@openai/agents-core/sandbox';

const BLOCK = 512;
const SIZE = { from: 124, to: 136 } as const;
const KIND = 156;
/** Headers that only describe the next member: extended ones, long names and long links. */
const DESCRIPTIONS = new Set(['x', 'g', 'L', 'K']);
const MOST_ARCHIVE_BYTES = 1024 * 1024 * 1024;

/** What `tar` may write; an archive is one result. */
export const ARCHIVE_LIMIT: number = MOST_ARCHIVE_BYTES;

/** @throws SandboxArchiveError for an archive that exceeds a limit, or has no form that limits can be applied to */
export function requireWithin(
  archive: Uint8Array,
  limits: SandboxArchiveLimits | ResolvedSandboxArchiveLimits | null,
): void {
  if (limits === null) return;
  const { maxInputBytes, maxExtractedBytes, maxMembers } = limits;
  requireAtMost('maxInputBytes', archive.byteLength, maxInputBytes);
  if ((maxExtractedBytes ?? null) === null && (maxMembers ?? null) === null) return;
  const { members, bytes } = measure(archive);
  requireAtMost('maxMembers', members, maxMembers);
  requireAtMost('maxExtractedBytes', bytes, maxExtractedBytes);
}

function requireAtMost(field: string, found: number, limit: number | null | undefined): void {
  if (limit === null || limit === undefined || found <= limit) return;
  const message = `The archive exceeds ${field}: ${found} instead of ${limit} at most`;
  throw new SandboxArchiveError(message, { field, found, limit });
}

function measure(archive: Uint8Array): { readonly members: number; readonly bytes: number } {
  let members = 0;
  let bytes = 0;
  for (let place = 0; place + BLOCK <= archive.byteLength && archive[place] !== 0;) {
    const size = sizeAt(archive, place);
    if (!DESCRIPTIONS.has(String.fromCodePoint(archive[place + KIND] ?? 0))) {
      members += 1;
      bytes += size;
    }
    place += BLOCK + Math.ceil(size / BLOCK) * BLOCK;
  }
  return { members, bytes };
}

/** Octal. The form for 8 GiB and more is refused: an archive is smaller. */
function sizeAt(archive: Uint8Array, place: number): number {
  const text = new TextDecoder().decode(archive.subarray(place + SIZE.from, place + SIZE.to));
  const digits = text.replaceAll('\0', ' ').trim();
  if (/^[0-7]*$/.test(digits)) return Number.parseInt(digits === '' ? '0' : digits, 8);
  throw new SandboxArchiveError('The workspace archive is no tar archive without compression', {
    place,
  });
}
