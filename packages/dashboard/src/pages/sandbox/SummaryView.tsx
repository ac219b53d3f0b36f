import type { ReactNode } from 'react';
import { CopyButton } from '../../parts/CopyButton.tsx';
import { formatMib } from '../../parts/format-amount.ts';
import { formatSpan } from '../../parts/format-time.ts';
import { Panel } from '../../parts/Panel.tsx';
import { Time } from '../../parts/Time.tsx';
import { Labels } from '../sandboxes/Labels.tsx';
import type { SandboxRecord } from './sandbox-record.ts';

/** What it is, and what it was made of. */
export function SummaryView({ sandbox }: { readonly sandbox: SandboxRecord }) {
  const { spec } = sandbox;
  const facts: readonly (readonly [string, ReactNode])[] = [
    ['Id', <Copied key="id" text={sandbox.id} />],
    ['Slug', <Copied key="slug" text={sandbox.slug} />],
    ['Isolation', sandbox.isolation ?? 'not made yet'],
    ['Reason', sandbox.status_reason ?? '–'],
    ['Made', <Time key="made" at={sandbox.created_at} />],
    ['Started', <Time key="started" at={sandbox.started_at} />],
    ['Stopped', <Time key="stopped" at={sandbox.stopped_at} />],
    ['Kind', sandbox.ephemeral ? 'ephemeral: removed when it stops' : 'persistent'],
  ];
  return (
    <>
      <Panel title="State">
        <Facts facts={facts} />
      </Panel>
      {spec === undefined ? (
        <Panel title="Made of">
          <p className="hint">Known once its image is, which is when it is first started.</p>
        </Panel>
      ) : (
        <MadeOf spec={spec} />
      )}
    </>
  );
}

function MadeOf({ spec }: { readonly spec: NonNullable<SandboxRecord['spec']> }) {
  const { resources, network, lifecycle, runtime } = spec;
  const span = (seconds: number | null) => (seconds === null ? 'no limit' : formatSpan(seconds * 1000));
  const facts: readonly (readonly [string, ReactNode])[] = [
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
    ['Network', network.enabled ? (network.policy === null ? 'public addresses' : 'by rules') : 'none'],
    ['Secrets', network.secrets.map(({ env_var }) => env_var).join(', ') || '–'],
    ['Mounts', spec.mounts.map(({ guest, type }) => `${guest} (${type})`).join(', ') || '–'],
    [
      'Published ports',
      network.ports.map(({ host_port, guest_port }) => `${host_port}→${guest_port}`).join(', ') || '–',
    ],
    ['Labels', <Labels key="labels" labels={spec.labels} />],
  ];
  return (
    <Panel title="Made of">
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

function Facts({ facts }: { readonly facts: readonly (readonly [string, ReactNode])[] }) {
  return (
    <dl className="facts">
      {facts.map(([name, value]) => (
        <div key={name}>
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
