import { fileURLToPath } from 'node:url';
import { command, inNamespace } from './command.ts';

/** Something to try from inside a sandbox. */
export type Attempt =
  | { readonly kind: 'tcp'; readonly host: string; readonly port: number }
  /** Opens that many connections at once and keeps them; tells how many were answered. */
  | { readonly kind: 'tcpMany'; readonly host: string; readonly port: number; readonly count: number }
  | {
      readonly kind: 'udp';
      readonly host: string;
      readonly port: number;
      readonly text: string;
      readonly from?: string;
    }
  | {
      readonly kind: 'dns';
      readonly server: string;
      readonly name: string;
      readonly transport: 'udp' | 'tcp';
      /** 53 unless given. */
      readonly port?: number;
    };

const MAIN = fileURLToPath(new URL('probe-main.ts', import.meta.url));

/** Tries everything at once in the network namespace at `path`; one outcome each, in words. */
export async function probe(path: string, ...attempts: readonly Attempt[]): Promise<readonly string[]> {
  const [program, ...parameters] = inNamespace(path, process.execPath, MAIN, JSON.stringify(attempts));
  return JSON.parse(await command(program, ...parameters)) as string[];
}
