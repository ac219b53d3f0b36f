import { readdirSync } from 'node:fs';
import { readKernelFile } from '../cgroup/kernel-file.ts';

/** How all threads of these processes wake, each way once, as `policy nice` (proc(5)): policy 3 waits for its turn, 0 does not. */
export function wakeOrders(pids: readonly number[]): readonly string[] {
  const threads = pids.flatMap((pid) =>
    readdirSync(`/proc/${pid}/task`).map((id) => `/proc/${pid}/task/${id}`),
  );
  return [...new Set(threads.flatMap(orderOf))].sort();
}

/** None of one that has ended meanwhile. */
function orderOf(thread: string): readonly string[] {
  const stat = readKernelFile(`${thread}/stat`);
  if (stat === undefined) return [];
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return [`${fields[38]} ${fields[16]}`];
}
