import { useId, type InputHTMLAttributes, type ReactNode, type SelectHTMLAttributes } from 'react';

interface FieldProps {
  readonly label: string;
  readonly hint?: ReactNode;
  /** What is wrong with what stands in it. */
  readonly problem?: string | undefined;
}

type TextFieldProps = FieldProps &
  Omit<InputHTMLAttributes<HTMLInputElement>, 'onChange'> & {
    readonly onChange: (value: string) => void;
  };

/** A line to type in, with its name, what belongs there, and what is wrong. */
export function TextField({ label, hint, problem, onChange, ...rest }: TextFieldProps) {
  const id = useId();
  return (
    <Frame id={id} label={label} hint={hint} problem={problem}>
      <input
        {...rest}
        id={id}
        aria-invalid={problem !== undefined}
        aria-describedby={`${id}-hint`}
        onChange={(event) => onChange(event.target.value)}
      />
    </Frame>
  );
}

type SelectFieldProps = FieldProps &
  Omit<SelectHTMLAttributes<HTMLSelectElement>, 'onChange'> & {
    /** Value and what it is called. */
    readonly choices: readonly (readonly [string, string])[];
    readonly onChange: (value: string) => void;
  };

export function SelectField({ label, hint, problem, choices, onChange, ...rest }: SelectFieldProps) {
  const id = useId();
  return (
    <Frame id={id} label={label} hint={hint} problem={problem}>
      <select
        {...rest}
        id={id}
        aria-invalid={problem !== undefined}
        aria-describedby={`${id}-hint`}
        onChange={(event) => onChange(event.target.value)}
      >
        {choices.map(([value, name]) => (
          <option key={value} value={value}>
            {name}
          </option>
        ))}
      </select>
    </Frame>
  );
}

interface CheckFieldProps {
  readonly label: string;
  readonly hint?: ReactNode;
  readonly checked: boolean;
  readonly onChange: (isChecked: boolean) => void;
}

export function CheckField({ label, hint, checked, onChange }: CheckFieldProps) {
  const id = useId();
  return (
    <div className="check">
      <input id={id} type="checkbox" checked={checked} onChange={(event) => onChange(event.target.checked)} />
      <label htmlFor={id}>{label}</label>
      {hint === undefined ? null : <p className="hint">{hint}</p>}
    </div>
  );
}

function Frame({
  id,
  label,
  hint,
  problem,
  children,
}: FieldProps & { readonly id: string; readonly children: ReactNode }) {
  return (
    <div className="field">
      <label htmlFor={id}>{label}</label>
      {children}
      <p id={`${id}-hint`} className={problem === undefined ? 'hint' : 'problem'}>
        {problem ?? hint}
      </p>
    </div>
  );
}
