import { useState } from 'react';
import { useAction } from '../../api/use-call.ts';
import { Button } from '../../parts/Button.tsx';
import { CeilingHint } from '../../parts/CeilingHint.tsx';
import { SelectField, TextField } from '../../parts/Field.tsx';
import { Form, FormFailure } from '../../parts/Form.tsx';
import { Panel } from '../../parts/Panel.tsx';
import type { SandboxRecord } from './sandbox-record.ts';

const PROTOCOLS = [
  ['tcp', 'TCP'],
  ['udp', 'UDP'],
  ['icmpv4', 'ICMPv4'],
  ['icmpv6', 'ICMPv6'],
] as const;

/** Shows which rule decides about a connection, without opening one. */
export function ExplainPanel({ sandbox }: { readonly sandbox: SandboxRecord }) {
  const [host, setHost] = useState('');
  const [port, setPort] = useState('443');
  const [protocol, setProtocol] = useState<(typeof PROTOCOLS)[number][0]>('tcp');
  const explain = useAction('network.explain');
  const submit = (): void => {
    const body = { host: host.trim(), protocol, ...(port === '' ? {} : { port: Number(port) }) };
    explain.mutate({ params: { sandbox_id: sandbox.id }, body });
  };
  return (
    <Panel title="Test the network rules" hint={<CeilingHint />}>
      <Form error={explain.error} onSubmit={submit}>
        <div className="fields">
          <TextField
            label="Name or address"
            field="host"
            placeholder="api.example.com"
            required
            value={host}
            onChange={setHost}
          />
          <TextField
            label="Port"
            field="port"
            type="number"
            min={0}
            max={65_535}
            value={port}
            onChange={setPort}
          />
          <SelectField
            label="Protocol"
            field="protocol"
            choices={PROTOCOLS}
            value={protocol}
            onChange={(value) => setProtocol(PROTOCOLS.find(([name]) => name === value)?.[0] ?? 'tcp')}
          />
        </div>
        <FormFailure />
        <div className="actions">
          <Button type="submit" isBusy={explain.isPending}>
            Explain
          </Button>
        </div>
      </Form>
      {explain.data === undefined ? null : (
        <p className="explained" role="status">
          <span className={explain.data.action === 'allow' ? 'status good' : 'status bad'}>
            {explain.data.action === 'allow' ? 'allowed' : 'denied'}
          </span>{' '}
          {explain.data.reason}
        </p>
      )}
    </Panel>
  );
}
