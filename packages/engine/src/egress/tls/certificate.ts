import {
  createHash,
  createPublicKey,
  randomBytes,
  sign,
  type KeyObject,
  type X509Certificate,
} from 'node:crypto';
import { isIP } from 'node:net';
import {
  bits,
  boolean,
  element,
  integer,
  nothing,
  octets,
  oid,
  readElements,
  sequence,
  set,
  tagged,
  text,
  time,
} from './der.ts';

export interface Validity {
  readonly from: Date;
  readonly until: Date;
}

/** An issuer: a key, and its certificate. */
export interface Issuer {
  readonly key: KeyObject;
  readonly certificate: X509Certificate;
}

const OID = {
  commonName: '2.5.4.3',
  subjectKeyId: '2.5.29.14',
  keyUsage: '2.5.29.15',
  alternativeName: '2.5.29.17',
  basicConstraints: '2.5.29.19',
  authorityKeyId: '2.5.29.35',
  extendedKeyUsage: '2.5.29.37',
  serverAuthentication: '1.3.6.1.5.5.7.3.1',
} as const;

/** The longest common name that RFC 5280 allows; clients check only the alternative names anyway. */
const MAX_COMMON_NAME = 64;
const SERIAL_BYTES = 16;
const ALTERNATIVE = { dns: 0x82, address: 0x87 } as const;

/** A self-signed CA certificate. PEM. */
export function writeAuthority(commonName: string, key: KeyObject, validity: Validity): string {
  const subject = name(commonName);
  const keyInfo = publicKeyInfo(key);
  const body = writeBody({ issuer: subject, subject, keyInfo, validity, key }, [
    extension(OID.basicConstraints, sequence(boolean(true), integer(Buffer.from([0]))), true),
    // keyCertSign and cRLSign.
    extension(OID.keyUsage, bits(Buffer.from([0b0000_0110]), 1), true),
    extension(OID.subjectKeyId, octets(keyId(keyInfo))),
  ]);
  return toPem(body, key);
}

/** A certificate for one server, a name or an address, with the public half of `key`. PEM. */
export function writeLeaf(host: string, key: KeyObject, issuer: Issuer, validity: Validity): string {
  const keyInfo = publicKeyInfo(key);
  const parts = readElements(issuer.certificate.raw)[0]?.content ?? Buffer.alloc(0);
  const issued = {
    issuer: subjectOf(issuer.certificate),
    subject: name(host.length > MAX_COMMON_NAME ? 'server' : host),
    keyInfo,
    validity,
    key: issuer.key,
  };
  const body = writeBody(issued, [
    extension(OID.basicConstraints, sequence(), true),
    // digitalSignature
    extension(OID.keyUsage, bits(Buffer.from([0b1000_0000]), 7), true),
    extension(OID.extendedKeyUsage, sequence(oid(OID.serverAuthentication))),
    extension(OID.alternativeName, sequence(alternativeName(host))),
    extension(OID.subjectKeyId, octets(keyId(keyInfo))),
    extension(OID.authorityKeyId, sequence(element(0x80, issuerKeyId(parts, issuer)))),
  ]);
  return toPem(body, issuer.key);
}

interface Issued {
  readonly issuer: Buffer;
  readonly subject: Buffer;
  readonly keyInfo: Buffer;
  readonly validity: Validity;
  /** Of the issuer. */
  readonly key: KeyObject;
}

/** RFC 5280, 4.1. */
function writeBody(
  { issuer, subject, keyInfo, validity, key }: Issued,
  extensions: readonly Buffer[],
): Buffer {
  const serial = randomBytes(SERIAL_BYTES);
  // Positive, and without a leading zero byte.
  serial.writeUInt8((serial.readUInt8(0) & 0x7f) | 0x40, 0);
  return sequence(
    tagged(0, integer(Buffer.from([2]))),
    integer(serial),
    signatureAlgorithm(key),
    issuer,
    sequence(time(validity.from), time(validity.until)),
    subject,
    keyInfo,
    tagged(3, sequence(...extensions)),
  );
}

function toPem(body: Buffer, key: KeyObject): string {
  const signature = sign(key.asymmetricKeyType === 'ed25519' ? null : 'sha256', body, key);
  const whole = sequence(body, signatureAlgorithm(key), bits(signature));
  const lines = whole.toString('base64').match(/.{1,64}/g) ?? [];
  return ['-----BEGIN CERTIFICATE-----', ...lines, '-----END CERTIFICATE-----', ''].join('\n');
}

/** With SHA-256, by the type of the issuer's key. */
const ALGORITHMS: Readonly<Record<string, Buffer>> = {
  ec: sequence(oid('1.2.840.10045.4.3.2')),
  rsa: sequence(oid('1.2.840.113549.1.1.11'), nothing()),
  ed25519: sequence(oid('1.3.101.112')),
};

function signatureAlgorithm({ asymmetricKeyType: type }: KeyObject): Buffer {
  const algorithm = ALGORITHMS[type ?? ''];
  if (algorithm === undefined)
    throw new Error(`Keys of type ${type} cannot sign certificates here; use EC, RSA or Ed25519`);
  return algorithm;
}

function name(commonName: string): Buffer {
  return sequence(set(sequence(oid(OID.commonName), text(commonName))));
}

function alternativeName(host: string): Buffer {
  if (isIP(host) === 0) return element(ALTERNATIVE.dns, Buffer.from(host));
  return element(ALTERNATIVE.address, addressBytes(host));
}

function addressBytes(address: string): Buffer {
  if (!address.includes(':')) return Buffer.from(address.split('.').map(Number));
  const [head = '', tail] = address.split('::');
  const groups = (part: string) => (part === '' ? [] : part.split(':'));
  const before = groups(head);
  const behind = groups(tail ?? '');
  const between = Array.from({ length: 8 - before.length - behind.length }, () => '0');
  return Buffer.from(
    [...before, ...between, ...behind].map((group) => group.padStart(4, '0')).join(''),
    'hex',
  );
}

function extension(id: string, value: Buffer, isCritical = false): Buffer {
  return isCritical ? sequence(oid(id), boolean(true), octets(value)) : sequence(oid(id), octets(value));
}

function publicKeyInfo(key: KeyObject): Buffer {
  return createPublicKey(key).export({ type: 'spki', format: 'der' });
}

/** The usual method: SHA-1 of the key's bits. It identifies the key and proves nothing. */
function keyId(keyInfo: Buffer): Buffer {
  const [, key] = readElements(readElements(keyInfo)[0]?.content ?? Buffer.alloc(0));
  return createHash('sha1')
    .update(key?.content.subarray(1) ?? Buffer.alloc(0))
    .digest();
}

/** The subject, the sixth part of a certificate's body, byte by byte: clients compare it that way. */
export function subjectOf({ raw }: X509Certificate): Buffer {
  const parts = readElements(raw)[0]?.content ?? Buffer.alloc(0);
  const body = readElements(readElements(parts)[0]?.content ?? Buffer.alloc(0));
  const isVersioned = body[0]?.tag === 0xa0;
  const subject = body[isVersioned ? 5 : 4];
  if (subject === undefined) throw new Error('The certificate has no subject');
  return subject.whole;
}

/** The issuer's subject key identifier. */
function issuerKeyId(parts: Buffer, { certificate }: Issuer): Buffer {
  const body = readElements(readElements(parts)[0]?.content ?? Buffer.alloc(0));
  const wanted = oid(OID.subjectKeyId);
  for (const each of readElements(
    readElements(body.find(({ tag }) => tag === 0xa3)?.content ?? Buffer.alloc(0))[0]?.content ??
      Buffer.alloc(0),
  )) {
    const [id, ...rest] = readElements(each.content);
    const value = rest.at(-1);
    if (id?.whole.equals(wanted) && value !== undefined)
      return readElements(value.content)[0]?.content ?? Buffer.alloc(0);
  }
  return keyId(certificate.publicKey.export({ type: 'spki', format: 'der' }));
}
