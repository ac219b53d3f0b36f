import { useQuery } from '@tanstack/react-query';
import { listeningPorts } from './listening-ports.ts';
import { useSandbox } from './use-sandbox.ts';

const LIVE_MS = 3000;
const MAX_BYTES = 256 * 1024;
const TABLES = ['/proc/net/tcp', '/proc/net/tcp6'];

/** The listening TCP ports of the sandbox; empty when they cannot be read. */
export function useListeningPorts(id: string): readonly number[] {
  const { data: sandbox } = useSandbox(id);
  const { data } = useQuery({
    queryKey: ['listening', id],
    queryFn: async ({ signal }) => {
      const reads = TABLES.map(
        async (path) => await sandbox?.files.readText(path, { maxBytes: MAX_BYTES, signal }),
      );
      const tables = await Promise.allSettled(reads);
      return listeningPorts(tables.map((table) => (table.status === 'fulfilled' ? (table.value ?? '') : '')));
    },
    enabled: sandbox !== undefined,
    refetchInterval: LIVE_MS,
    retry: false,
  });
  return data ?? [];
}
