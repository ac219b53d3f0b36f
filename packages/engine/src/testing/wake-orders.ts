import { readdirSync, readFileSync } from 'node:fs';

/** How all threads of these processes wake, each way once, as `policy nice` (proc(5)): policy 3 waits for its turn, 0 does not. */
export function wakeOrders(pids: readonly number[]): readonly string[] {
  const threads = pids.flatMap((pid) =>
    readdirSync(`/proc/${pid}/task`).map((id) => `/proc/${pid}/task/${id}`),
  );
  return [...new Set(threads.map(orderOf))].sort();
}

function orderOf(thread: string): string {
  const stat = readFileSync(`${thread}/stat`, 'utf8');
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return `${fields[38]} ${fields[16]}`;
}
