const LISTENING = '0A';
const SHOWN = 20;

/** The TCP ports of listening sockets in texts of `/proc/net/tcp` and `tcp6`, ascending. */
export function listeningPorts(tables: readonly string[]): readonly number[] {
  const ports = tables.flatMap((table) =>
    table.split('\n').flatMap((line) => {
      const [, local = '', , state] = line.trim().split(/\s+/);
      const [, hex] = /:([0-9A-F]{4})$/.exec(local) ?? [];
      return state === LISTENING && hex !== undefined ? [Number.parseInt(hex, 16)] : [];
    }),
  );
  return [...new Set(ports)]
    .filter((port) => port > 0)
    .toSorted((a, b) => a - b)
    .slice(0, SHOWN);
}
