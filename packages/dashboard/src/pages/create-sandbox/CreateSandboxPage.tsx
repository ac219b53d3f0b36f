import { useState } from 'react';
import { useOrganization } from '../../api/organization.ts';
import { useAction, useCall } from '../../api/use-call.ts';
import { Button } from '../../parts/Button.tsx';
import { CodeBlock } from '../../parts/CodeBlock.tsx';
import { Failure } from '../../parts/Failure.tsx';
import { Form, FormFailure } from '../../parts/Form.tsx';
import { LoadingPanel } from '../../parts/Loading.tsx';
import { Page } from '../../parts/Page.tsx';
import { Panel } from '../../parts/Panel.tsx';
import { showToast } from '../../parts/toast-list.ts';
import { navigate, useSearch } from '../../router/location.ts';
import { fromSandbox } from './from-sandbox.ts';
import { BasicFields, LifeFields, NetworkFields, StorageFields, type FieldsProps } from './SandboxFields.tsx';
import { EMPTY_FORM, type SandboxForm } from './sandbox-form.ts';
import { toCommand } from './to-command.ts';
import { toRequest } from './to-request.ts';
import './create-sandbox.css';

/** Empty, or filled by the address: `?image=`, `?snapshot=`, or `?from=` with the id of a sandbox. */
export function CreateSandboxPage() {
  const [search] = useSearch();
  const from = search.get('from');
  const start = {
    ...EMPTY_FORM,
    image: search.get('image') ?? '',
    snapshot: search.get('snapshot') ?? '',
  };
  return (
    <Page title="New sandbox" hint="A small machine for code that you do not trust">
      {from === null ? <CreateForm start={start} omitted={[]} /> : <CreateLike key={from} id={from} />}
    </Page>
  );
}

function CreateLike({ id }: { readonly id: string }) {
  const input = { params: { sandbox_id: id } };
  const { data: sandbox, error: sandboxError } = useCall('sandboxes.get', input);
  const { data: volumes, error: volumesError } = useCall('sandboxes.volumes', input);
  const error = sandboxError ?? volumesError;
  if (error !== null) return <Failure error={error} />;
  if (sandbox === undefined || volumes === undefined) return <LoadingPanel rows={8} />;
  const spec = sandbox.requested ?? sandbox.spec;
  if (spec === undefined) return <CreateForm start={EMPTY_FORM} omitted={[]} />;
  const { form, omitted } = fromSandbox({ ...sandbox, spec }, volumes);
  return <CreateForm start={form} origin={sandbox.name} omitted={omitted} />;
}

interface CreateFormProps {
  readonly start: SandboxForm;
  /** The sandbox that the form was filled from. */
  readonly origin?: string;
  readonly omitted: readonly string[];
}

/** A form, and beside it the equivalent command and request. */
function CreateForm({ start, origin, omitted }: CreateFormProps) {
  const { slug } = useOrganization();
  const [form, setForm] = useState<SandboxForm>(start);
  const create = useAction('sandboxes.create', {
    onDone: ({ id, name }) => {
      showToast(`${name} is created`);
      navigate(`/orgs/${slug}/sandboxes/${id}`);
    },
  });
  const fields: FieldsProps = { form, set: (change) => setForm({ ...form, ...change }) };
  return (
    <Form
      className="create"
      error={create.error}
      onSubmit={() => create.mutate({ body: toRequest(form), query: { start: true } })}
    >
      <div className="create-fields">
        {origin === undefined ? null : <Origin name={origin} omitted={omitted} />}
        <BasicFields {...fields} focus={origin === undefined ? 'name' : 'image'} />
        <NetworkFields {...fields} />
        <StorageFields {...fields} />
        <LifeFields {...fields} />
        <FormFailure />
        <div className="actions">
          <Button type="submit" look="primary" icon="play" isBusy={create.isPending}>
            Create and start
          </Button>
          <Button onClick={() => navigate(`/orgs/${slug}/sandboxes`)}>Cancel</Button>
        </div>
      </div>
      <div className="create-same">
        <Panel title="As a command and a request">
          <CodeBlock label="Command line" text={toCommand(form)} />
          <CodeBlock
            label={`POST /v1/orgs/${slug}/sandboxes?start=true`}
            text={JSON.stringify(toRequest(form), null, 2)}
          />
        </Panel>
      </div>
    </Form>
  );
}

function Origin({ name, omitted }: { readonly name: string; readonly omitted: readonly string[] }) {
  return (
    <p className="banner" role="status">
      Filled in from <strong>{name}</strong>, which is kept: delete it when you need it no longer. Settings
      that this form has no field for are not copied{omitted.length === 0 ? '' : `: ${omitted.join(', ')}`}.
    </p>
  );
}
