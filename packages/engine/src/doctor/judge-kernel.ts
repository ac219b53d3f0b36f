import { missingControllers } from '../cgroup/cgroup-layout.ts';
import type { CgroupLayout } from '../cgroup/cgroup-layout.ts';
import type { Finding, Status } from './finding.ts';
import { findingsOf } from './finding.ts';
import type { Attempt, HostFacts } from './host-facts.ts';

const finding = findingsOf('kernel');

export function judgeKernel(facts: HostFacts): readonly Finding[] {
  return [
    facts.isRoot
      ? finding('rights', 'ok', 'root')
      : finding('rights', 'missing', 'not root, so little could be tried', 'run it again with sudo'),
    finding('kernel', 'ok', `Linux ${facts.kernelRelease}`),
    judgeCgroups(facts.cgroups),
    judgeUserNamespaces(facts.maxUserNamespaces),
    judgeSeccomp(facts.seccompActions),
    judgeAttempt('idmapped overlay', facts.attempts.idmappedOverlay, 'missing', {
      worked: 'layers are shared by sandboxes with different user ids',
      remedy:
        'Linux 5.19 or newer with overlay is needed (modprobe overlay), and a data folder on ext4, xfs or btrfs (--path, SVC_HOME)',
    }),
    judgeAttempt('disk limits', facts.attempts.diskImage, 'missing', {
      worked: 'ext4 images on loop devices',
      remedy: 'modprobe loop ext4; in a container: pass /dev/loop-control and loop devices on',
    }),
    judgeAttempt('fuse', facts.attempts.fuse, 'warn', {
      worked: 'folders of this host can be mounted for writing',
      remedy: 'modprobe fuse; in a container: pass /dev/fuse on. Without it writable bind mounts are refused',
    }),
    judgeAttempt('nftables', facts.attempts.nftables, 'missing', {
      worked: 'rules can be read',
      remedy: 'modprobe nf_tables; apt-get install nftables',
    }),
    finding('forwarding', 'ok', facts.ipForward ? 'on' : 'off; the engine turns it on for its sandboxes'),
    judgeAttempt('KVM', facts.attempts.kvm, 'absent', {
      worked: 'a guest ran',
      remedy: null,
    }),
  ];
}

function judgeCgroups(layout: CgroupLayout): Finding {
  const hasUnified = layout.trees.some(({ version }) => version === 2);
  const kind = layout.version === 2 ? 'v2' : hasUnified ? 'v1 with a v2 tree beside it (hybrid)' : 'v1';
  const missing = missingControllers(layout);
  if (missing.length === 0) return finding('cgroups', 'ok', `${kind}, all controllers`);
  const remedy =
    'boot with the controllers enabled (cgroup_enable=memory swapaccount=1), or delegate them to this container';
  const lost = `${kind}, without ${missing.join(', ')}: those limits do not hold`;
  // Without a memory limit one sandbox can take the whole host.
  return finding('cgroups', missing.includes('memory') ? 'missing' : 'warn', lost, remedy);
}

function judgeUserNamespaces(max: number | null): Finding {
  if (max !== null && max > 0) return finding('user namespaces', 'ok', `up to ${max}`);
  return finding(
    'user namespaces',
    'missing',
    max === null ? 'not in this kernel' : 'switched off',
    'sysctl -w user.max_user_namespaces=65536',
  );
}

function judgeSeccomp(actions: string | null): Finding {
  const isThere = actions !== null && /\berrno\b/.test(actions);
  if (isThere) return finding('seccomp', 'ok', 'filters can be loaded');
  return finding('seccomp', 'missing', 'no filters', 'a kernel with CONFIG_SECCOMP_FILTER is needed');
}

function judgeAttempt(
  name: string,
  attempt: Attempt,
  otherwise: Status,
  texts: { readonly worked: string; readonly remedy: string | null },
): Finding {
  if (attempt.outcome === 'worked') return finding(name, 'ok', texts.worked);
  if (attempt.outcome === 'failed') return finding(name, otherwise, attempt.reason, texts.remedy);
  return finding(name, otherwise === 'missing' ? 'warn' : otherwise, attempt.reason);
}
