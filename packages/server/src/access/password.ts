import { randomBytes, scrypt, timingSafeEqual } from 'node:crypto';
import { PlatformError } from '@svc/contract';

/** 32 MiB and about a tenth of a second: what OWASP asks of scrypt at the least. */
const COSTS = { N: 2 ** 15, r: 8, p: 3 } as const;
const MAX_MEMORY = 64 * 1024 * 1024;
const SALT_BYTES = 16;
const HASH_BYTES = 32;
/** Each takes a core and 32 MiB, and they are made for strangers. */
const MAX_AT_ONCE = 2;
const MAX_WAITING = 32;

/** Costs of the hash stand in it, so that those of tomorrow can differ. */
export async function hashPassword(password: string): Promise<string> {
  const salt = randomBytes(SALT_BYTES);
  const hash = await derive(password, salt, COSTS);
  const costs = `${COSTS.N},${COSTS.r},${COSTS.p}`;
  return ['scrypt', costs, salt.toString('base64url'), hash.toString('base64url')].join('$');
}

/** `hash` undefined: no user has this password; the comparison takes as long as any other. */
export async function isPassword(password: string, hash: string | undefined): Promise<boolean> {
  const [, costs = '', salt = '', expected = ''] = (hash ?? (await unusedHash())).split('$');
  const [N = 0, r = 0, p = 0] = costs.split(',').map(Number);
  const found = await derive(password, Buffer.from(salt, 'base64url'), { N, r, p });
  return timingSafeEqual(found, Buffer.from(expected, 'base64url')) && hash !== undefined;
}

let hashOfNoUser: Promise<string> | undefined;
const unusedHash = async () => await (hashOfNoUser ??= hashPassword(randomBytes(SALT_BYTES).toString('hex')));

let running = 0;
const waiting: (() => void)[] = [];

async function derive(
  password: string,
  salt: Uint8Array,
  costs: { readonly N: number; readonly r: number; readonly p: number },
): Promise<Buffer> {
  if (running >= MAX_AT_ONCE) {
    if (waiting.length >= MAX_WAITING)
      throw new PlatformError(
        'unavailable',
        'Too many people sign in at this moment; try again in a few seconds',
      );
    await new Promise<void>((resolve) => waiting.push(resolve));
  }
  running += 1;
  try {
    // The same word typed on two machines can be two sequences of code points.
    return await new Promise((resolve, reject) => {
      scrypt(password.normalize('NFKC'), salt, HASH_BYTES, { ...costs, maxmem: MAX_MEMORY }, (error, key) =>
        error === null ? resolve(key) : reject(error),
      );
    });
  } finally {
    running -= 1;
    waiting.shift()?.();
  }
}
