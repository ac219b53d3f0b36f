import { useId } from 'react';
import { useCall } from '../../api/use-call.ts';
import { CeilingHint } from '../../parts/CeilingHint.tsx';
import { CheckField, LinesField, SelectField, TextField } from '../../parts/Field.tsx';
import { Panel } from '../../parts/Panel.tsx';
import type { SandboxForm } from './sandbox-form.ts';

export interface FieldsProps {
  readonly form: SandboxForm;
  readonly set: (change: Partial<SandboxForm>) => void;
}

const REACHES = [
  ['public', 'Public addresses only'],
  ['named', 'Only the domains listed'],
  ['none', 'Nothing'],
  ['all', 'Everything, private networks too'],
  ['off', 'No network interface'],
] as const;
const ISOLATIONS = [
  ['auto', 'Strongest available'],
  ['microvm', 'microVM'],
  ['gvisor', 'gVisor'],
  ['container', 'Container'],
] as const;

/** One of the choices: the list offers no other. */
function chosen<Value extends string>(choices: readonly (readonly [Value, string])[], value: string): Value {
  return choices.find(([name]) => name === value)?.[0] ?? (choices[0]?.[0] as Value);
}

interface BasicFieldsProps extends FieldsProps {
  /** The field with the initial focus. */
  readonly focus: 'name' | 'image';
}

export function BasicFields({ form, set, focus }: BasicFieldsProps) {
  return (
    <Panel title="Program">
      <div className="fields">
        <TextField
          label="Name"
          field="name"
          required
          autoFocus={focus === 'name'}
          pattern="[A-Za-z0-9][A-Za-z0-9._\-]{0,127}"
          hint="Letters, digits, dots, hyphens"
          value={form.name}
          onChange={(name) => set({ name })}
        />
        {form.snapshot === '' ? (
          <ImageField form={form} set={set} hasFocus={focus === 'image'} />
        ) : (
          <TextField
            label="Snapshot"
            field="disk_snapshot_ref"
            hint="Its disk takes the place of an image"
            value={form.snapshot}
            readOnly
            onChange={() => undefined}
          />
        )}
      </div>
      <TextField
        label="Command"
        field="runtime"
        hint="Leave empty for the command of the image. Without one, the sandbox waits for commands"
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

/** Suggests the images that are on the host already: they start without a connection to a registry. */
function ImageField({ form, set, hasFocus }: FieldsProps & { readonly hasFocus: boolean }) {
  const { data } = useCall('images.list', {});
  const list = useId();
  return (
    <>
      <TextField
        label="Image"
        field="image"
        required
        autoFocus={hasFocus}
        list={list}
        placeholder={data?.[0]?.references[0] ?? 'registry.example.com/name:tag'}
        hint="On this server, or from a registry"
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
    <Panel title="Network and secrets" hint={<CeilingHint />}>
      <div className="fields">
        <SelectField
          label="Network access"
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
            hint="NAME@host,host, one per line: requests to these hosts get the secret; the sandbox never sees it"
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
    <Panel title="Environment, volumes and labels">
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
          hint="VOLUME:/path, one per line; :ro at the end for read-only"
          value={form.mounts}
          onChange={(mounts) => set({ mounts })}
        />
        <LinesField
          label="Labels"
          field="labels"
          hint="key=value, one per line"
          value={form.labels}
          onChange={(labels) => set({ labels })}
        />
      </div>
    </Panel>
  );
}

export function LifeFields({ form, set }: FieldsProps) {
  return (
    <Panel title="Lifetime">
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
          hint="Deleted when it stops"
          checked={form.isEphemeral}
          onChange={(isEphemeral) => set({ isEphemeral })}
        />
      </div>
    </Panel>
  );
}
