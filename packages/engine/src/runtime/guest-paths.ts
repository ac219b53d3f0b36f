/**
 * Files of /proc and /sys that reveal data of the host or other sandboxes, or control the host; hidden from sandboxes that share its
 * kernel. A path that this kernel does not have is ignored.
 */
export const MASKED_PATHS: readonly string[] = [
  '/proc/acpi',
  '/proc/asound',
  '/proc/buddyinfo',
  '/proc/cmdline', // how the host was started
  '/proc/config.gz', // what its kernel was built with
  '/proc/consoles',
  '/proc/diskstats', // every disk of every sandbox, and how busy it is
  '/proc/interrupts', // typing and network patterns of the host
  '/proc/kallsyms', // where the kernel's functions lie
  '/proc/kcore', // the memory of the host
  '/proc/key-users',
  '/proc/keys',
  '/proc/latency_stats',
  '/proc/locks',
  '/proc/modules',
  '/proc/partitions',
  '/proc/pressure',
  '/proc/sched_debug', // processes of the host
  '/proc/schedstat',
  '/proc/scsi',
  '/proc/softirqs',
  '/proc/swaps',
  '/proc/timer_list', // processes of the host
  '/proc/timer_stats',
  '/proc/zoneinfo',
  '/sys/block', // disks of every sandbox
  '/sys/class/bdi',
  '/sys/class/block',
  '/sys/dev/block',
  '/sys/devices/virtual/bdi',
  '/sys/devices/virtual/block', // where each loop device's file lies
  '/sys/devices/virtual/dmi', // serial numbers and maker of the machine
  '/sys/devices/virtual/powercap', // power side channel
  '/sys/firmware',
  '/sys/fs/btrfs',
  '/sys/fs/ext4', // how much each disk was written to
  '/sys/fs/xfs',
  '/sys/kernel/slab',
];

/** Parts of /proc that programs read and that would control the host when written. */
export const READONLY_PATHS: readonly string[] = [
  '/proc/bus',
  '/proc/fs',
  '/proc/irq',
  '/proc/sys',
  '/proc/sysrq-trigger',
];
