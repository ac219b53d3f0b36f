import { spawn } from '@svc/contract/node-spawn';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { Attempt } from './host-facts.ts';

const KVM_TIMEOUT_MS = 3000;

/** Opening /dev/kvm does not prove that it works: it can hang its user. So a guest is started on it, with a deadline. */
export async function tryKvm(runsc: string, folder: string, isThorough: boolean): Promise<Attempt> {
  if (!existsSync('/dev/kvm')) return { outcome: 'failed', reason: 'no /dev/kvm; no class needs it today' };
  if (!existsSync(runsc))
    return { outcome: 'untried', reason: '/dev/kvm is there, but no runsc to try it with' };
  if (!isThorough)
    return { outcome: 'untried', reason: '/dev/kvm is there, not tried; no class needs it today' };
  const state = join(folder, 'kvm');
  const args = ['--root', state, '--platform=kvm', '--network=none', '--ignore-cgroups', 'do', '/bin/true'];
  // SAFETY: the program is the operator's choice, without a shell; it has its own process group, so that all of it can be killed.
  const child = spawn(runsc, args, { stdio: 'ignore', detached: true });
  const timer = setTimeout(() => killGroup(child.pid), KVM_TIMEOUT_MS);
  try {
    const [code, signal] = (await once(child, 'exit')) as [number | null, NodeJS.Signals | null];
    if (code === 0) return { outcome: 'worked' };
    const reason = signal === null ? `ended with ${code}` : `did not answer in ${KVM_TIMEOUT_MS / 1000} s`;
    return {
      outcome: 'failed',
      reason: `/dev/kvm is there, but a guest on it ${reason}; no class needs it today`,
    };
  } finally {
    clearTimeout(timer);
    killGroup(child.pid);
  }
}

function killGroup(pid: number | undefined): void {
  if (pid === undefined) return;
  try {
    // SAFETY: the group was made for this child, and its number is not reused while a member lives.
    process.kill(-pid, 'SIGKILL');
  } catch {
    // The group is empty.
  }
}
