import type { ReactNode } from 'react';
import { CopyButton } from '../../parts/CopyButton.tsx';
import { formatMib } from '../../parts/format-amount.ts';
import { formatSpan } from '../../parts/format-time.ts';
import { Panel } from '../../parts/Panel.tsx';
import { Time } from '../../parts/Time.tsx';
import { isPublicPolicy } from '../sandboxes/is-public-policy.ts';
import { Labels } from '../sandboxes/Labels.tsx';
import type { SandboxRecord } from './sandbox-record.ts';

/** Its state, and how it is configured. */
export function SummaryView({ sandbox }: { readonly sandbox: SandboxRecord }) {
  const { spec, requested } = sandbox;
  const facts: readonly (readonly [string, ReactNode])[] = [
    ['ID', <Copied key="id" text={sandbox.id} />],
    ['Slug', <Copied key="slug" text={sandbox.slug} />],
    ['Isolation', sandbox.isolation ?? 'not known yet'],
    ...(sandbox.node === null ? [] : [['Node', sandbox.node] as const]),
    ['Reason', sandbox.status_reason ?? '–'],
    ['Created', <Time key="created" at={sandbox.created_at} />],
    ['Started', <Time key="started" at={sandbox.started_at} />],
    ['Stopped', <Time key="stopped" at={sandbox.stopped_at} />],
    ['Kind', sandbox.ephemeral ? 'ephemeral: removed when it stops' : 'persistent'],
  ];
  return (
    <>
      <Panel title="State">
        <Facts facts={facts} />
      </Panel>
      {spec === undefined ? null : <Configuration title="Configuration" spec={spec} />}
      {spec === undefined && requested !== undefined ? (
        <Configuration
          title="Requested configuration"
          hint="Without the settings of the image, which are known after the first start"
          spec={requested}
        />
      ) : null}
    </>
  );
}

interface ConfigurationProps {
  readonly title: string;
  readonly hint?: string;
  readonly spec: NonNullable<SandboxRecord['requested']>;
}

function Configuration({ title, hint, spec }: ConfigurationProps) {
  const { resources, network, lifecycle, runtime } = spec;
  const span = (seconds: number | null) => (seconds === null ? 'no limit' : formatSpan(seconds * 1000));
  const facts: readonly (readonly [string, ReactNode])[] = [
    ['Image', <code key="image">{spec.image ?? '–'}</code>],
    ['vCPUs', resources.vcpus],
    ['Memory', formatMib(resources.memory_mib)],
    ['Disk', resources.disk_size_mib === null ? '–' : formatMib(resources.disk_size_mib)],
    [
      'Command',
      <code key="cmd">{[...(runtime.entrypoint ?? []), ...(runtime.cmd ?? [])].join(' ') || '–'}</code>,
    ],
    ['Working folder', <code key="dir">{runtime.workdir ?? '/'}</code>],
    ['Idle timeout', span(lifecycle.idle_timeout_secs)],
    ['Longest run', span(lifecycle.max_duration_secs)],
    ['Network', describeNetwork(network)],
    ['Secrets', network.secrets.map(({ env_var }) => env_var).join(', ') || '–'],
    ['Mounts', spec.mounts.map(({ guest, type }) => `${guest} (${type})`).join(', ') || '–'],
    [
      'Published ports',
      network.ports.map(({ host_port, guest_port }) => `${host_port}→${guest_port}`).join(', ') || '–',
    ],
    ['Labels', Object.keys(spec.labels).length === 0 ? '–' : <Labels key="labels" labels={spec.labels} />],
  ];
  return (
    <Panel title={title} hint={hint}>
      <Facts facts={facts} />
      {spec.env.length === 0 ? null : (
        <details className="env">
          <summary>
            {spec.env.length} environment variable{spec.env.length === 1 ? '' : 's'}
          </summary>
          <pre tabIndex={0}>{spec.env.map(({ key, value }) => `${key}=${value}`).join('\n')}</pre>
        </details>
      )}
    </Panel>
  );
}

function describeNetwork({ enabled, policy }: ConfigurationProps['spec']['network']): string {
  if (!enabled) return 'none';
  return policy === null || isPublicPolicy(policy) ? 'public addresses' : 'by rules';
}

function Facts({ facts }: { readonly facts: readonly (readonly [string, ReactNode])[] }) {
  return (
    <dl className="facts">
      {facts.map(([name, value]) => (
        <div key={name} className={name === 'ID' || name === 'Command' ? 'wide' : undefined}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}

function Copied({ text }: { readonly text: string }) {
  return (
    <span className="copied">
      <code>{text}</code>
      <CopyButton text={text} label={`Copy ${text}`} />
    </span>
  );
}
