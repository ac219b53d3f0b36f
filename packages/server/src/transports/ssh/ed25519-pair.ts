import { generateKeyPairSync, randomBytes } from 'node:crypto';

export interface Ed25519Pair {
  /** In OpenSSH's format, not encrypted. */
  readonly privateKey: string;
  /** A line of a .pub file. */
  readonly publicKey: string;
}

const TYPE = 'ssh-ed25519';
const MAGIC = Buffer.from('openssh-key-v1\u0000');
const BLOCK_BYTES = 8;
const LINE_LENGTH = 70;

/**
 * Generates a key pair. Own serialization, because ssh2 writes one pair in a hundred in a form that no program can
 * read, including ssh2.
 */
export function makeEd25519Pair(): Ed25519Pair {
  const { d = '', x = '' } = generateKeyPairSync('ed25519').privateKey.export({ format: 'jwk' });
  const point = Buffer.from(x, 'base64url');
  const publicBlob = Buffer.concat([counted(TYPE), counted(point)]);
  const check = randomBytes(4);
  const secret = Buffer.concat([
    check,
    check,
    publicBlob,
    counted(Buffer.concat([Buffer.from(d, 'base64url'), point])),
    counted(''),
  ]);
  const padding = Buffer.from([1, 2, 3, 4, 5, 6, 7].slice(0, -secret.length & (BLOCK_BYTES - 1)));
  const file = Buffer.concat([
    MAGIC,
    counted('none'),
    counted('none'),
    counted(''),
    Buffer.from([0, 0, 0, 1]),
    counted(publicBlob),
    counted(Buffer.concat([secret, padding])),
  ]);
  const lines = file.toString('base64').match(new RegExp(`.{1,${LINE_LENGTH}}`, 'g')) ?? [];
  const body = ['-----BEGIN OPENSSH PRIVATE KEY-----', ...lines, '-----END OPENSSH PRIVATE KEY-----', ''];
  return { privateKey: body.join('\n'), publicKey: `${TYPE} ${publicBlob.toString('base64')}` };
}

function counted(content: string | Buffer): Buffer {
  const bytes = Buffer.from(content);
  const length = Buffer.alloc(4);
  length.writeUInt32BE(bytes.length);
  return Buffer.concat([length, bytes]);
}
