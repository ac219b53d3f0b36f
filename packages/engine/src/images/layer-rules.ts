import { PlatformError } from '@svc/contract/errors';
import type { Header } from 'tar-stream';
import type { ImageLimits } from './image-limits.ts';
import type { TarHeader } from './tar-entries.ts';

/** An entry in the form in which it may reach the disk. */
export type KeptEntry = Partial<Omit<Header, 'pax'>> &
  Pick<Header, 'name' | 'type'> & { readonly pax?: Readonly<Record<string, string>> };

/** Null leaves the entry out. */
type Decision = KeptEntry | null;

type Attributes = Pick<KeptEntry, 'mode' | 'uid' | 'gid' | 'mtime' | 'pax'>;

type Kind = 'directory' | 'file' | 'symlink' | 'dropped';

/** What a layer was seen to hold. */
export interface LayerCounts {
  entries: number;
  unpackedBytes: number;
  /** Device nodes, FIFOs and reserved names that were left out. */
  dropped: number;
}

const HIGHEST_ID = 65_535;
const UNPRIVILEGED_ID = 65_534;
const WHITEOUT_PREFIX = '.wh.';
const OPAQUE_MARKER = '.wh..wh..opq';
const USER_XATTR = 'SCHILY.xattr.user.';
const OVERLAY_XATTR = 'SCHILY.xattr.user.overlay.';
const LAST_MTIME_SECONDS = 2 ** 31 - 1;

/**
 * Decides entry by entry what of a layer's tar may reach the disk, and in which form.
 * - A name is relative, without `..`, and no entry lies below something that this layer made a link or a file: nothing can be written
 *   through a symbolic link. Symbolic links themselves may point anywhere; they are only ever followed inside a sandbox.
 * - A hard link points to an entry of the same layer that came before it.
 * - Device nodes and FIFOs are left out and counted.
 * - Modes stay as they are, setuid and setgid included: sandboxes mount layers nosuid and set no_new_privs, so the bits do nothing.
 * - Owners stay; an id above 65535, which no sandbox could map, becomes the overflow id 65534.
 * - Extended attributes other than `user.*` are left out: `trusted.overlay.*` would steer the host's overlay, and file capabilities do nothing
 *   on a nosuid mount.
 * - Whiteouts take the form overlayfs knows, after everything else: a 0/0 character device. Opaque folders are told apart: they need an
 *   attribute that only root may set.
 */
export class LayerRules {
  readonly counts: LayerCounts = { entries: 0, unpackedBytes: 0, dropped: 0 };
  readonly #limits: ImageLimits;
  readonly #kinds = new Map<string, Kind>();
  readonly #directories = new Map<string, KeptEntry>();
  readonly #whiteouts = new Set<string>();
  readonly #opaque = new Set<string>();

  constructor(limits: ImageLimits) {
    this.#limits = limits;
  }

  decide(entry: TarHeader): Decision {
    this.#count(entry);
    const path = this.#checkedPath(entry.name, 'name');
    const slash = path.lastIndexOf('/');
    const name = path.slice(slash + 1);
    const parent = slash === -1 ? '' : path.slice(0, slash);
    if (path.startsWith(WHITEOUT_PREFIX) || path.includes(`/${WHITEOUT_PREFIX}`)) {
      return this.#noteWhiteout(path, parent, name);
    }
    const header = this.#rewritten(entry, path);
    if (header === null) {
      this.counts.dropped += 1;
      if (path !== '') this.#remember(path, 'dropped');
      return null;
    }
    this.#remember(path, this.#kindOf(header));
    if (header.type === 'directory') this.#directories.set(path, header);
    return header;
  }

  /** The whiteouts, once every entry was decided. What the layer itself provides replaces what lies below it. */
  finish(): readonly KeptEntry[] {
    const whiteouts: KeptEntry[] = [];
    for (const path of this.#whiteouts) {
      const kind = this.#kinds.get(path);
      if (kind === 'directory') this.#opaque.add(path);
      else if (kind === undefined || kind === 'dropped') whiteouts.push(whiteout(path));
    }
    const implied = [...this.#opaque].filter((path) => !this.#directories.has(path)).map(newDirectory);
    return [...whiteouts, ...implied];
  }

  /** Folders that hide what lies below them in other layers; complete once `finish` was called. The empty string is the root. */
  opaqueFolders(): readonly string[] {
    return [...this.#opaque];
  }

  #countEntry(): void {
    this.counts.entries += 1;
    if (this.counts.entries > this.#limits.maxEntries) {
      throw tooMuch(`more than ${this.#limits.maxEntries} files`);
    }
  }

  #count(entry: TarHeader): void {
    this.#countEntry();
    this.counts.unpackedBytes += entry.size;
    if (this.counts.unpackedBytes > this.#limits.maxUnpackedBytes) {
      throw tooMuch(`more than ${this.#limits.maxUnpackedBytes} bytes once unpacked`);
    }
  }

  /** `a/b` for `./a//b/`; the empty string for the root folder. */
  #checkedPath(raw: string, what: string): string {
    if (raw.startsWith('/')) throw hostile(`an absolute ${what}`, raw);
    if (Buffer.byteLength(raw) > this.#limits.maxNameBytes) throw hostile(`a ${what} that is too long`, raw);
    if (raw.includes('\uFFFD')) throw hostile(`a ${what} that is not UTF-8`, raw);
    const parts = raw.split('/').filter((part) => part !== '' && part !== '.');
    if (parts.includes('..')) throw hostile(`a ${what} with ..`, raw);
    if (parts.some((part) => Buffer.byteLength(part) > 255)) throw hostile(`a ${what} that is too long`, raw);
    if (parts.length > this.#limits.maxDepth) throw hostile('folders nested too deeply', raw);
    return parts.join('/');
  }

  /** Every folder above `path` counts as made by this layer from now on, so it cannot become a link later. */
  #remember(path: string, kind: Kind): void {
    if (path !== '') this.#rememberParents(path);
    const before = this.#kinds.get(path);
    if (before !== undefined && before !== kind) throw hostile(`one name as ${before} and as ${kind}`, path);
    this.#kinds.set(path, kind);
  }

  #rememberParents(path: string): void {
    for (let slash = path.indexOf('/'); slash !== -1; slash = path.indexOf('/', slash + 1)) {
      const parent = path.slice(0, slash);
      const kind = this.#kinds.get(parent);
      if (kind === undefined) this.#imply(parent);
      else if (kind !== 'directory') throw hostile(`a file below a ${kind}`, path);
    }
  }

  /** tar makes missing parent folders: one deep name can stand for hundreds of them, and each counts. */
  #imply(path: string): void {
    this.#countEntry();
    this.#kinds.set(path, 'directory');
  }

  #kindOf(header: KeptEntry): Kind {
    if (header.type === 'directory') return 'directory';
    if (header.type === 'symlink') return 'symlink';
    // A hard link to a symbolic link is one: nothing may be written below it either.
    if (header.type === 'link') return this.#kinds.get(header.linkname ?? '') ?? 'file';
    return 'file';
  }

  #noteWhiteout(path: string, parent: string, name: string): null {
    const isReserved = name.startsWith('.wh..wh.') || !name.startsWith(WHITEOUT_PREFIX);
    if (name === OPAQUE_MARKER) {
      this.#remember(parent, 'directory');
      this.#opaque.add(parent);
    } else if (isReserved) {
      this.counts.dropped += 1;
    } else {
      const hidden = this.#checkedPath(
        `${parent === '' ? '' : `${parent}/`}${name.slice(WHITEOUT_PREFIX.length)}`,
        'name',
      );
      if (hidden === parent) throw hostile('a whiteout without a name', path);
      this.#rememberParents(hidden);
      this.#whiteouts.add(hidden);
    }
    return null;
  }

  #rewritten(entry: TarHeader, path: string): Decision {
    // Old archives mark a folder by the slash alone.
    const isDirectory = entry.type === 'directory' || (entry.type === 'file' && entry.name.endsWith('/'));
    const common = this.#attributes(entry);
    if (path === '' || isDirectory) return { ...common, name: `./${path}`, type: 'directory', size: 0 };
    switch (entry.type) {
      case 'file':
      case 'contiguous-file':
        return { ...common, name: path, type: 'file', size: entry.size };
      case 'symlink':
        return { ...common, name: path, type: 'symlink', linkname: this.#symlinkTarget(entry), size: 0 };
      case 'link':
        return this.#hardLink(entry, path, common);
      case 'character-device':
      case 'block-device':
      case 'fifo':
        return null;
      case null:
      default:
        throw hostile('an entry of a kind that images cannot hold (sparse or multi-volume)', entry.name);
    }
  }

  #symlinkTarget(entry: TarHeader): string {
    const target = entry.linkname ?? '';
    if (target === '' || Buffer.byteLength(target) > this.#limits.maxNameBytes) {
      throw hostile('a symbolic link without a usable target', entry.name);
    }
    return target;
  }

  #hardLink(entry: TarHeader, path: string, common: Attributes): Decision {
    const target = this.#checkedPath(entry.linkname ?? '', 'hard link target');
    const kind = this.#kinds.get(target);
    if (kind === 'dropped') return null;
    if (kind === undefined || kind === 'directory' || target === path) {
      throw hostile('a hard link to something that this layer does not hold', entry.name);
    }
    return { ...common, name: path, type: 'link', linkname: target, size: 0 };
  }

  #attributes(entry: TarHeader): Attributes {
    const pax: Record<string, string> = {};
    for (const [key, value] of Object.entries(entry.pax ?? {})) {
      if (key.startsWith('GNU.sparse.')) {
        throw hostile('a sparse file; make the archive without --sparse', entry.name);
      }
      if (isKeptAttribute(key, value)) pax[key] = value;
    }
    const seconds = Number(entry.pax?.['mtime'] ?? entry.mtime.getTime() / 1000);
    const isDirectory = entry.type === 'directory';
    return {
      // The type bits keep a mode of 0000 from being taken for "not given"; the tar header holds the low twelve only.
      mode: (entry.mode & 0o7777) | (isDirectory ? 0o40000 : 0o100000),
      uid: mappableId(entry.pax?.['uid'] ?? entry.uid),
      gid: mappableId(entry.pax?.['gid'] ?? entry.gid),
      mtime: new Date(1000 * Math.floor(Math.min(Math.max(seconds || 0, 0), LAST_MTIME_SECONDS))),
      ...(Object.keys(pax).length > 0 ? { pax } : {}),
    };
  }
}

function isKeptAttribute(key: string, value: string): boolean {
  return key.startsWith(USER_XATTR) && !key.startsWith(OVERLAY_XATTR) && !value.includes('\uFFFD');
}

function mappableId(value: string | number): number {
  const id = Number(value);
  return Number.isInteger(id) && id >= 0 && id <= HIGHEST_ID ? id : UNPRIVILEGED_ID;
}

function whiteout(path: string): KeptEntry {
  return {
    name: path,
    type: 'character-device',
    mode: 0o20000,
    uid: 0,
    gid: 0,
    devmajor: 0,
    devminor: 0,
    size: 0,
    mtime: new Date(0),
  };
}

function newDirectory(path: string): KeptEntry {
  return { name: `./${path}`, type: 'directory', mode: 0o40755, uid: 0, gid: 0, size: 0, mtime: new Date(0) };
}

function hostile(what: string, name: string): PlatformError {
  const shown = name.length > 100 ? `${name.slice(0, 100)}…` : name;
  return new PlatformError(
    'invalid_image',
    `The image was refused: a layer holds ${what} (${JSON.stringify(shown)})`,
    {
      details: { name: shown },
    },
  );
}

function tooMuch(what: string): PlatformError {
  return new PlatformError(
    'invalid_image',
    `The image was refused: it holds ${what}; raise the image limits if you trust it`,
  );
}
