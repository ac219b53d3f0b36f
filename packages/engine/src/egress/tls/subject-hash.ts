import { createHash, X509Certificate } from 'node:crypto';
import { subjectOf } from './certificate.ts';
import { element, readElements, sequence, set, text, type Element } from './der.ts';

/** Decoders of the string types that OpenSSL normalizes before it compares them. */
const CHARACTERS: ReadonlyMap<number, (bytes: Buffer) => string> = new Map([
  [0x0c, (bytes: Buffer) => bytes.toString('utf8')],
  ...[0x13, 0x14, 0x16, 0x1a].map((tag) => [tag, (bytes: Buffer) => bytes.toString('latin1')] as const),
  [0x1e, (bytes: Buffer) => Buffer.from(bytes).swap16().toString('utf16le')],
]);

/**
 * The name under which OpenSSL finds an authority in a folder of certificates (`<hash>.0`): the first four bytes of the SHA-1 of its
 * subject, in lower case and with single spaces, as `openssl x509 -hash` prints them.
 */
export function subjectHash(certificate: string): string {
  const subject = subjectOf(new X509Certificate(certificate));
  const [name] = readElements(subject);
  const parts = readElements(name?.content ?? Buffer.alloc(0)).map(canonicalPart);
  const digest = createHash('sha1').update(Buffer.concat(parts)).digest();
  return digest.readUInt32LE(0).toString(16).padStart(8, '0');
}

function canonicalPart({ content }: Element): Buffer {
  const attributes = readElements(content).map((attribute) => {
    const [type, value] = readElements(attribute.content);
    if (type === undefined || value === undefined) throw new Error('A part of a name is cut short');
    return sequence(type.whole, canonicalValue(value));
  });
  return set(...attributes.toSorted((one, other) => Buffer.compare(one, other)));
}

function canonicalValue({ tag, content }: Element): Buffer {
  const read = CHARACTERS.get(tag);
  if (read === undefined) return element(tag, content);
  const spaced = read(content).replaceAll(/[\t-\r ]+/g, ' ');
  return text(spaced.replaceAll(/^ | $|[A-Z]/g, (found) => found.trim().toLowerCase()));
}
