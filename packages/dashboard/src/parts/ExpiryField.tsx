import { SelectField } from './Field.tsx';

const DAY_MS = 86_400_000;
const CHOICES = [
  ['30', 'In 30 days'],
  ['90', 'In 90 days'],
  ['365', 'In a year'],
  ['', 'Never'],
] as const;

/** When a credential ends, in days from now; empty: never. */
export function ExpiryField({
  value,
  onChange,
}: {
  readonly value: string;
  readonly onChange: (days: string) => void;
}) {
  return (
    <SelectField label="Expires" field="expires_at" choices={CHOICES} value={value} onChange={onChange} />
  );
}

/** The value for the API. */
export function expiryOf(days: string): string | null {
  return days === '' ? null : new Date(Date.now() + Number(days) * DAY_MS).toISOString();
}
