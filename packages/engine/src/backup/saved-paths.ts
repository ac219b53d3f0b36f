/** The tar of a layer; every other piece is a plain file. */
const LAYER = /^images\/layers\/[0-9a-f]{64}\/fs$/;

/**
 * All paths that an archive of the engine's part may hold. SAFETY: a path that matches has no `..`, no link and no name that a user chose,
 * so a restore cannot write outside its folder.
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

/** The kind of a piece, by its path; null: the path does not belong in an archive. */
export function kindOfPath(path: string): 'layer' | 'file' | null {
  if (LAYER.test(path)) return 'layer';
  const isDots = path.split('/').some((part) => /^\.+$/.test(part));
  return !isDots && FILES.some((pattern) => pattern.test(path)) ? 'file' : null;
}
