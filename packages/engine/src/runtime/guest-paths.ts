/**
 * Files of /proc and /sys that tell about the host or steer it, hidden from sandboxes that share its kernel.
 * A path that this kernel does not have costs nothing.
 */
export const MASKED_PATHS: readonly string[] = [
  '/proc/acpi',
  '/proc/asound',
  '/proc/interrupts', // typing and network patterns of the host
  '/proc/kallsyms', // where the kernel's functions lie
  '/proc/kcore', // the memory of the host
  '/proc/keys',
  '/proc/latency_stats',
  '/proc/modules',
  '/proc/sched_debug', // processes of the host
  '/proc/scsi',
  '/proc/timer_list', // processes of the host
  '/proc/timer_stats',
  '/sys/devices/virtual/dmi', // serial numbers and maker of the machine
  '/sys/devices/virtual/powercap', // power side channel
  '/sys/firmware',
];

/** Parts of /proc that programs read and that would steer the host when written. */
export const READONLY_PATHS: readonly string[] = [
  '/proc/bus',
  '/proc/fs',
  '/proc/irq',
  '/proc/sys',
  '/proc/sysrq-trigger',
];
