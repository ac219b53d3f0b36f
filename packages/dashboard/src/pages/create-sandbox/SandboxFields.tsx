import { useId } from 'react';
import { useCall } from '../../api/use-call.ts';
import { CheckField, LinesField, SelectField, TextField } from '../../parts/Field.tsx';
import { Panel } from '../../parts/Panel.tsx';
import type { SandboxForm } from './sandbox-form.ts';

export interface FieldsProps {
  readonly form: SandboxForm;
  readonly set: (change: Partial<SandboxForm>) => void;
}

const REACHES = [
  ['public', 'The internet, not our network'],
  ['named', 'Only these domains'],
  ['none', 'Nobody'],
  ['all', 'Everything, our network too'],
  ['off', 'No network at all'],
] as const;
const ISOLATIONS = [
  ['auto', 'The strongest that there is'],
  ['microvm', 'microVM'],
  ['gvisor', 'gVisor'],
  ['container', 'Container'],
] as const;

/** One of the choices: the list offers no other. */
function chosen<Value extends string>(choices: readonly (readonly [Value, string])[], value: string): Value {
  return choices.find(([name]) => name === value)?.[0] ?? (choices[0]?.[0] as Value);
}

export function BasicFields({ form, set }: FieldsProps) {
  return (
    <Panel title="What it runs">
      <div className="fields">
        <TextField
          label="Name"
          field="name"
          required
          autoFocus
          pattern="[A-Za-z0-9][A-Za-z0-9._\-]{0,127}"
          hint="Letters, digits, dots, hyphens"
          value={form.name}
          onChange={(name) => set({ name })}
        />
        <ImageField form={form} set={set} />
      </div>
      <TextField
        label="Command"
        field="runtime"
        hint="Empty: what the image says, or just a machine that waits"
        value={form.command}
        onChange={(command) => set({ command })}
      />
      <SizeFields form={form} set={set} />
    </Panel>
  );
}

function SizeFields({ form, set }: FieldsProps) {
  return (
    <div className="fields">
      <TextField
        label="vCPUs"
        field="resources.vcpus"
        type="number"
        min={1}
        max={255}
        required
        value={form.vcpus}
        onChange={(vcpus) => set({ vcpus })}
      />
      <TextField
        label="Memory, MiB"
        field="resources.memory_mib"
        type="number"
        min={16}
        required
        value={form.memoryMib}
        onChange={(memoryMib) => set({ memoryMib })}
      />
      <TextField
        label="Disk, MiB"
        field="resources.disk_size_mib"
        type="number"
        min={16}
        placeholder="4096"
        value={form.diskMib}
        onChange={(diskMib) => set({ diskMib })}
      />
      <SelectField
        label="Isolation"
        field="isolation"
        choices={ISOLATIONS}
        value={form.isolation}
        onChange={(value) => set({ isolation: chosen(ISOLATIONS, value) })}
      />
    </div>
  );
}

/** With those that are on the host already as suggestions. */
function ImageField({ form, set }: FieldsProps) {
  const { data } = useCall('images.list', {});
  const list = useId();
  return (
    <>
      <TextField
        label="Image"
        field="image"
        required
        list={list}
        placeholder="python:3.13"
        hint="Of a registry, or one that is here"
        value={form.image}
        onChange={(image) => set({ image })}
      />
      <datalist id={list}>
        {data
          ?.flatMap(({ references }) => references)
          .map((reference) => (
            <option key={reference} value={reference} />
          ))}
      </datalist>
    </>
  );
}

export function NetworkFields({ form, set }: FieldsProps) {
  return (
    <Panel title="Network and secrets">
      <div className="fields">
        <SelectField
          label="What it may reach"
          field="network.policy"
          choices={REACHES}
          value={form.reach}
          onChange={(value) => set({ reach: chosen(REACHES, value) })}
        />
        {form.reach === 'named' ? (
          <LinesField
            label="Domains"
            hint="One per line"
            value={form.domains}
            onChange={(domains) => set({ domains })}
          />
        ) : null}
        {form.reach === 'off' ? null : (
          <LinesField
            label="Secrets"
            field="network.secrets"
            hint="NAME@host,host: a secret of the organization that it uses towards these hosts and never holds"
            value={form.secrets}
            onChange={(secrets) => set({ secrets })}
          />
        )}
      </div>
    </Panel>
  );
}

export function StorageFields({ form, set }: FieldsProps) {
  return (
    <Panel title="What it has">
      <div className="fields">
        <LinesField
          label="Environment"
          field="env"
          hint="KEY=VALUE, one per line"
          value={form.env}
          onChange={(env) => set({ env })}
        />
        <LinesField
          label="Volumes"
          field="mounts"
          hint="VOLUME:/path, with :ro to read only"
          value={form.mounts}
          onChange={(mounts) => set({ mounts })}
        />
        <LinesField
          label="Labels"
          field="labels"
          hint="key=value, to find it by"
          value={form.labels}
          onChange={(labels) => set({ labels })}
        />
      </div>
    </Panel>
  );
}

export function LifeFields({ form, set }: FieldsProps) {
  return (
    <Panel title="How long it lives">
      <div className="fields">
        <TextField
          label="Stop when idle, minutes"
          field="lifecycle.idle_timeout_secs"
          type="number"
          min={1}
          placeholder="never"
          value={form.idleMinutes}
          onChange={(idleMinutes) => set({ idleMinutes })}
        />
        <TextField
          label="Longest run, minutes"
          field="lifecycle.max_duration_secs"
          type="number"
          min={1}
          placeholder="no limit"
          value={form.maxMinutes}
          onChange={(maxMinutes) => set({ maxMinutes })}
        />
        <CheckField
          label="Ephemeral"
          field="lifecycle.ephemeral"
          hint="Removed when it stops"
          checked={form.isEphemeral}
          onChange={(isEphemeral) => set({ isEphemeral })}
        />
      </div>
    </Panel>
  );
}
