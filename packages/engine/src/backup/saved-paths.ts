/** The tar of a layer; all others are files as they are. */
const LAYER = /^images\/layers\/[0-9a-f]{64}\/fs$/;

/**
 * All that an archive of the engine's part may hold. SAFETY: what matches has no `..`, no link and no name of anybody's choice, so a
 * restore writes nowhere else.
 */
const FILES = [
  /^authority\.pem$/,
  /^sandboxes\/[0-9a-f]{16}\/(record\.json|log-\d{1,9}\.jsonl)$/,
  /^rootfs\/disks\/[0-9a-f]{16}\.img$/,
  /^volumes\/volume-[0-9a-f]{24}\/(volume\.json|image\.ext4)$/,
  /^volumes\/volume-[0-9a-f]{24}\/writing\/[0-9A-Za-z._-]{1,100}$/,
  /^snapshots\/[0-9a-f]{24}\/(snapshot\.json|disk\.img)$/,
  /^images\/(records|holds)\/[0-9a-f]{64}\.json$/,
  /^images\/layers\/[0-9a-f]{64}\/layer\.json$/,
];

/** What a piece is, by its path; null: nothing that belongs into an archive. */
export function kindOfPath(path: string): 'layer' | 'file' | null {
  if (LAYER.test(path)) return 'layer';
  const isDots = path.split('/').some((part) => /^\.+$/.test(part));
  return !isDots && FILES.some((pattern) => pattern.test(path)) ? 'file' : null;
}
