/**
 * Capabilities of root inside a sandbox, each with its reason. All of them apply only inside the user namespace of the sandbox. All others
 * are dropped: no NET_RAW (forged packets), no MKNOD, no SYS_ADMIN, no SYS_PTRACE, no AUDIT_WRITE, no SYS_RESOURCE (raising its own
 * limits).
 * The profile `restricted` drops the whole list for user processes: svc-init needs them to switch users and write files, and drops them
 * when it starts a process.
 */
export const GUEST_CAPABILITIES: readonly string[] = [
  'CAP_CHOWN', // package managers and archives restore owners
  'CAP_DAC_OVERRIDE', // root reads and writes every file of its own root file system
  'CAP_FOWNER', // chmod and utimes on files of other users, as archives need
  'CAP_FSETID', // keeps setgid bits when files are changed
  'CAP_KILL', // root ends processes of other users
  'CAP_SETGID', // su, sudo, daemons that drop privileges
  'CAP_SETUID',
  'CAP_SETPCAP', // dropping capabilities from the bounding set
  'CAP_NET_BIND_SERVICE', // servers on ports below 1024
  'CAP_SYS_CHROOT', // sshd, package builds
];
