import {
  METRIC_FAMILIES,
  type MetricFamily,
  type MetricName,
} from '../packages/server/src/accounting/metric-families.ts';

/** The page that lists the metrics of `/metrics`. */
export function renderMetricsReference(): string {
  const rows = Object.entries<MetricFamily>(METRIC_FAMILIES).map(
    ([name, { type, labels, help }]) =>
      `| \`${name}\` | ${type} | ${labels.map((label) => `\`${label}\``).join(', ')} | ${help} |`,
  );
  return `# Metrics

Generated from the code: what \`GET /metrics\` tells Prometheus, in the text format 0.0.4. It takes a key for all namespaces (\`svc server keygen\`), except on a server without keys. What the engine is asked for (pool, disk) is missing while it is away; \`svc_engine_up\` is 0 then. A dashboard for Grafana, made of the same table, is [beside this page](grafana-dashboard.json): *Dashboards, New, Import*. How to scrape it: [in production](../operating/production.md#monitoring).

| Name | Kind | Labels | Meaning |
|---|---|---|---|
${rows.join('\n')}
`;
}

interface Panel {
  readonly title: string;
  readonly unit: string;
  readonly queries: readonly { readonly expression: string; readonly legend: string }[];
}

const PANELS: readonly Panel[] = [
  {
    title: 'Engine up',
    unit: 'bool_on_off',
    queries: [{ expression: of('svc_engine_up'), legend: '{{instance}}' }],
  },
  {
    title: 'Sandboxes by state',
    unit: 'short',
    queries: [{ expression: `sum by (state) (${of('svc_sandboxes')})`, legend: '{{state}}' }],
  },
  {
    title: 'Calls per second',
    unit: 'reqps',
    queries: [
      { expression: `sum by (operation) (rate(${of('svc_calls_total')}[5m]))`, legend: '{{operation}}' },
    ],
  },
  {
    title: 'Calls that failed, per second',
    unit: 'reqps',
    queries: [
      {
        expression: `sum by (outcome) (rate(${of('svc_calls_total', 'outcome!~"success|cancelled"')}[5m]))`,
        legend: '{{outcome}}',
      },
    ],
  },
  {
    title: 'Duration of calls',
    unit: 's',
    queries: [0.5, 0.95, 0.99].map((part) => ({
      expression: `histogram_quantile(${part}, sum by (le) (rate(${buckets()}[5m])))`,
      legend: `p${part * 100}`,
    })),
  },
  {
    title: 'Duration of creates, p95',
    unit: 's',
    queries: [
      {
        expression: `histogram_quantile(0.95, sum by (le, operation) (rate(${buckets('operation=~"sandboxes.create|sandbox.start"')}[5m])))`,
        legend: '{{operation}}',
      },
    ],
  },
  {
    title: 'Warm sandboxes',
    unit: 'short',
    queries: [
      { expression: `sum by (class) (${of('svc_pool_waiting')})`, legend: 'waiting, {{class}}' },
      { expression: `sum(${of('svc_pool_max')})`, legend: 'most' },
    ],
  },
  {
    title: 'Creates that found one warm',
    unit: 'percentunit',
    queries: [
      {
        expression: `sum(rate(${of('svc_pool_handed_out_total')}[15m])) / (sum(rate(${of('svc_pool_handed_out_total')}[15m])) + sum(rate(${of('svc_pool_missed_total')}[15m])))`,
        legend: 'warm',
      },
      { expression: `sum(rate(${of('svc_pool_given_back_total')}[15m]))`, legend: 'given back per second' },
    ],
  },
  {
    title: 'Disk of the data folder',
    unit: 'bytes',
    queries: [
      { expression: of('svc_disk_total_bytes'), legend: 'all' },
      { expression: of('svc_disk_free_bytes'), legend: 'free' },
      { expression: of('svc_disk_promised_bytes'), legend: 'promised' },
      { expression: of('svc_disk_reserve_bytes'), legend: 'reserve' },
    ],
  },
  {
    title: 'Disk nearly full',
    unit: 'bool_yes_no',
    queries: [{ expression: of('svc_disk_short'), legend: '{{instance}}' }],
  },
  {
    title: 'Memory of the server',
    unit: 'bytes',
    queries: [{ expression: of('process_resident_memory_bytes'), legend: '{{instance}}' }],
  },
];

const COLUMNS = 2;
const [WIDTH, HEIGHT] = [12, 8];

/** A dashboard that Grafana imports; it asks which Prometheus to use, and which servers to show. */
export function renderGrafanaDashboard(): string {
  const source = { type: 'prometheus', uid: '${datasource}' };
  const panels = PANELS.map(({ title, unit, queries }, index) => ({
    id: index + 1,
    type: 'timeseries',
    title,
    datasource: source,
    gridPos: {
      h: HEIGHT,
      w: WIDTH,
      x: (index % COLUMNS) * WIDTH,
      y: Math.floor(index / COLUMNS) * HEIGHT,
    },
    fieldConfig: { defaults: { unit, min: 0 }, overrides: [] },
    targets: queries.map(({ expression, legend }, query) => ({
      refId: String.fromCodePoint(65 + query),
      datasource: source,
      expr: expression,
      legendFormat: legend,
    })),
  }));
  const variables = [
    { name: 'datasource', label: 'Prometheus', type: 'datasource', query: 'prometheus' },
    {
      name: 'instance',
      label: 'Server',
      type: 'query',
      datasource: source,
      query: `label_values(${'svc_engine_up' satisfies MetricName}, instance)`,
      refresh: 2,
      multi: true,
      includeAll: true,
      allValue: '.*',
    },
  ];
  const dashboard = {
    uid: 'svc',
    title: 'svc',
    tags: ['svc'],
    schemaVersion: 39,
    timezone: 'browser',
    refresh: '30s',
    time: { from: 'now-6h', to: 'now' },
    templating: { list: variables },
    panels,
  };
  return `${JSON.stringify(dashboard, null, 2)}\n`;
}

/** Selects the chosen servers. The name of an unknown metric does not compile. */
function of(name: MetricName, more?: string): string {
  return `${name}{instance=~"$instance"${more === undefined ? '' : `, ${more}`}}`;
}

function buckets(more?: string): string {
  return of('svc_call_duration_seconds', more).replace('{', '_bucket{');
}
