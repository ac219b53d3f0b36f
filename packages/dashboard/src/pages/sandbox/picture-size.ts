/** What a browser has to unpack of a picture of bytes. */
export interface PictureSize {
  readonly width: number;
  readonly height: number;
  /** Times that it is unpacked: pictures of an animation, or passes of one that becomes sharper. */
  readonly frames: number;
}

/**
 * The size of a PNG, JPEG, GIF or WebP from its headers. Like browsers it looks at the content and not at the declared type. Null when
 * it is none of them, or incomplete. Nothing is decompressed. Of several sizes in one picture it is the largest.
 */
export function sizeOfPicture(base64: string): PictureSize | null {
  try {
    const bytes = new Bytes(atob(base64));
    const read = READERS.find(({ begin }) => begin.test(bytes.text(0, 16)))?.read;
    const size = read?.(bytes) ?? null;
    return size === null || size.width === 0 || size.height === 0 ? null : size;
  } catch {
    // No base64, or it ends before it should.
    return null;
  }
}

const READERS: readonly {
  readonly begin: RegExp;
  readonly read: (bytes: Bytes) => PictureSize | null;
}[] = [
  // oxlint-disable-next-line no-control-regex -- the signature has them
  { begin: /^\x89PNG\r\n\x1a\n\0\0\0\rIHDR/, read: readPng },
  { begin: /^\xff\xd8\xff/, read: readJpeg },
  { begin: /^GIF8[79]a/, read: readGif },
  { begin: /^RIFF[^]{4}WEBPVP8/, read: readWebp },
];

/** https://www.w3.org/TR/png-3/ */
function readPng(bytes: Bytes): PictureSize {
  const size = { width: bytes.big(16, 4), height: bytes.big(20, 4) };
  let [said, found] = [1, 0];
  for (let at = 8; at < bytes.length; at += 12 + bytes.big(at, 4)) {
    const type = bytes.text(at + 4, 4);
    if (type === 'acTL') said = Math.max(said, bytes.big(at + 8, 4));
    if (type === 'fcTL') found += 1;
    if (type === 'IEND') break;
  }
  return { ...size, frames: Math.max(said, found) };
}

const [END_OF_IMAGE, START_OF_SCAN] = [0xd9, 0xda];
/** Markers that nothing follows: TEM, RST0 to RST7, SOI. */
const BARE = new Set([0x01, 0xd0, 0xd1, 0xd2, 0xd3, 0xd4, 0xd5, 0xd6, 0xd7, 0xd8]);
/** SOF0 to SOF15; DHT, JPG and DAC lie among them. */
const isFrame = (marker: number): boolean =>
  marker >= 0xc0 && marker <= 0xcf && ![0xc4, 0xc8, 0xcc].includes(marker);

/** ITU T.81, annex B. */
function readJpeg(bytes: Bytes): PictureSize | null {
  let [width, height, scans] = [0, 0, 0];
  for (let at = 2; at < bytes.length;) {
    // What is packed is passed over: there a byte of ones comes before a zero, or a marker that nothing follows.
    at = bytes.indexOf('\xff', at);
    const marker = bytes.big(at + 1, 1);
    if (marker === END_OF_IMAGE) break;
    if (marker === 0xff) at += 1;
    else if (marker === 0 || BARE.has(marker)) at += 2;
    else {
      if (isFrame(marker)) {
        height = Math.max(height, bytes.big(at + 5, 2));
        width = Math.max(width, bytes.big(at + 7, 2));
      }
      if (marker === START_OF_SCAN) scans += 1;
      at += 2 + bytes.big(at + 2, 2);
    }
  }
  return scans === 0 ? null : { width, height, frames: scans };
}

const [IMAGE, EXTENSION, TRAILER] = [0x2c, 0x21, 0x3b];

/** https://www.w3.org/Graphics/GIF/spec-gif89a.txt */
function readGif(bytes: Bytes): PictureSize | null {
  let [width, height, frames] = [bytes.little(6, 2), bytes.little(8, 2), 0];
  let at = 13 + coloursAt(bytes, 10);
  while (bytes.big(at, 1) !== TRAILER) {
    const kind = bytes.big(at, 1);
    if (kind === IMAGE) {
      frames += 1;
      width = Math.max(width, bytes.little(at + 1, 2) + bytes.little(at + 5, 2));
      height = Math.max(height, bytes.little(at + 3, 2) + bytes.little(at + 7, 2));
      at += 11 + coloursAt(bytes, at + 9);
    } else if (kind === EXTENSION) at += 2;
    else return null;
    // Blocks, each after its length, up to an empty one.
    while (bytes.big(at, 1) !== 0) at += 1 + bytes.big(at, 1);
    at += 1;
  }
  return { width, height, frames };
}

/** Bytes of a table of colours, if the flags at that place say that there is one. */
function coloursAt(bytes: Bytes, at: number): number {
  const flags = bytes.big(at, 1);
  return (flags & 0x80) === 0 ? 0 : 3 * 2 ** ((flags & 7) + 1);
}

/** https://www.rfc-editor.org/rfc/rfc9649 */
function readWebp(bytes: Bytes): PictureSize {
  let [width, height, frames] = [0, 0, 1];
  const take = (one: number, other: number): void => {
    width = Math.max(width, one);
    height = Math.max(height, other);
  };
  for (let at = 12; at + 8 <= bytes.length;) {
    const type = bytes.text(at, 4);
    const length = bytes.little(at + 4, 4);
    const data = at + 8;
    if (type === 'VP8X') take(bytes.little(data + 4, 3) + 1, bytes.little(data + 7, 3) + 1);
    if (type === 'VP8 ') take(bytes.little(data + 6, 2) & 0x3fff, bytes.little(data + 8, 2) & 0x3fff);
    if (type === 'VP8L') {
      const packed = bytes.little(data + 1, 4);
      take((packed & 0x3fff) + 1, ((packed >>> 14) & 0x3fff) + 1);
    }
    if (type === 'ANMF') {
      take(bytes.little(data + 6, 3) + 1, bytes.little(data + 9, 3) + 1);
      frames += 1;
    }
    at = data + length + (length % 2);
  }
  return { width, height, frames };
}

/** Of a text in which each character is one. Reads that end behind it fail. */
class Bytes {
  readonly #text: string;

  constructor(text: string) {
    this.#text = text;
  }

  get length(): number {
    return this.#text.length;
  }

  text(at: number, length: number): string {
    return this.#text.slice(at, at + length);
  }

  indexOf(byte: string, from: number): number {
    const at = this.#text.indexOf(byte, from);
    if (at === -1) throw new RangeError('It is not there');
    return at;
  }

  big(at: number, length: number): number {
    let number = 0;
    for (let index = at; index < at + length; index++) number = number * 256 + this.#byte(index);
    return number;
  }

  little(at: number, length: number): number {
    let number = 0;
    for (let index = at + length - 1; index >= at; index--) number = number * 256 + this.#byte(index);
    return number;
  }

  #byte(at: number): number {
    if (at >= this.#text.length) throw new RangeError('It ends before');
    return this.#text.charCodeAt(at);
  }
}
