/** The name, type and help of each family of metrics. */
export interface MetricFamily {
  readonly type: 'gauge' | 'counter' | 'histogram';
  readonly labels: readonly string[];
  /** A sentence without an end, as the format has it. */
  readonly help: string;
}

/**
 * All families of `/metrics`. There are no others (`renderFamily` takes no other name), and docs/reference/metrics.md and the
 * Grafana dashboard are made of it.
 */
export const METRIC_FAMILIES = {
  svc_engine_up: { type: 'gauge', labels: [], help: 'Whether the engine can run sandboxes.' },
  svc_sandboxes: { type: 'gauge', labels: ['state'], help: 'Sandboxes by observed state.' },
  svc_calls_total: {
    type: 'counter',
    labels: ['operation', 'outcome'],
    help: 'Calls by operation and outcome: success, cancelled or the code of an error.',
  },
  svc_call_duration_seconds: { type: 'histogram', labels: ['operation'], help: 'How long calls took.' },
  svc_pool_waiting: {
    type: 'gauge',
    labels: ['node', 'class'],
    help: 'Warm sandboxes that wait for a caller.',
  },
  svc_pool_max: { type: 'gauge', labels: ['node'], help: 'How many may wait at most.' },
  svc_pool_handed_out_total: {
    type: 'counter',
    labels: ['node'],
    help: 'Creates that got a warm sandbox, since the engine was started.',
  },
  svc_pool_missed_total: {
    type: 'counter',
    labels: ['node'],
    help: 'Creates that could have had one if it had been there.',
  },
  svc_pool_given_back_total: {
    type: 'counter',
    labels: ['node'],
    help: 'Warm sandboxes removed because their image was no longer requested, or the host needed the memory.',
  },
  svc_disk_free_bytes: { type: 'gauge', labels: ['node'], help: 'Free on the disk of the data folder.' },
  svc_disk_reserve_bytes: {
    type: 'gauge',
    labels: ['node'],
    help: 'Of it, kept for the engine and the server.',
  },
  svc_disk_promised_bytes: {
    type: 'gauge',
    labels: ['node'],
    help: 'What mounted disks and volumes may still come to take.',
  },
  svc_disk_total_bytes: { type: 'gauge', labels: ['node'], help: 'The disk of the data folder.' },
  svc_disk_short: {
    type: 'gauge',
    labels: ['node'],
    help: 'Whether nothing new is begun because the disk is nearly full.',
  },
  svc_webhook_deliveries_total: {
    type: 'counter',
    labels: ['outcome'],
    help: 'Attempts of this server to deliver to webhooks: succeeded, failed (tried again), given_up; and dropped because too many were waiting.',
  },
  svc_webhook_backlog: { type: 'gauge', labels: [], help: 'Messages that wait for webhooks, in the store.' },
  process_resident_memory_bytes: { type: 'gauge', labels: [], help: 'Memory of the server.' },
} as const satisfies Readonly<Record<string, MetricFamily>>;

export type MetricName = keyof typeof METRIC_FAMILIES;

/** The lines of one family, in the text format 0.0.4. `samples`: what stands behind its name, and the number. */
export function renderFamily(
  name: MetricName,
  samples: readonly (readonly [string, number])[],
): readonly string[] {
  const { type, help } = METRIC_FAMILIES[name];
  const lines = samples.map(([rest, value]) => `${name}${rest} ${value}`);
  return [`# HELP ${name} ${help}`, `# TYPE ${name} ${type}`, ...lines];
}
