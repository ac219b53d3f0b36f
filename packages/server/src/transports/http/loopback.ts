import { isIP } from 'node:net';

export function isLoopback(hostname: string): boolean {
  return (
    hostname === 'localhost' || hostname === '::1' || (isIP(hostname) === 4 && hostname.startsWith('127.'))
  );
}
