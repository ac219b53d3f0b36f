import {
  useId,
  type InputHTMLAttributes,
  type ReactNode,
  type SelectHTMLAttributes,
  type TextareaHTMLAttributes,
} from 'react';
import { useProblem } from './Form.tsx';

interface FieldProps {
  readonly label: string;
  readonly hint?: ReactNode;
  /** The API's name of the field; errors of the server about it are shown here. */
  readonly field?: string;
}

interface Changes {
  readonly onChange: (value: string) => void;
}

type TextFieldProps = FieldProps & Changes & Omit<InputHTMLAttributes<HTMLInputElement>, 'onChange'>;

/** A text input with label, hint and error. */
export function TextField({ label, hint, field, onChange, ...rest }: TextFieldProps) {
  return (
    <Frame label={label} hint={hint} field={field}>
      {(bound) => <input {...rest} {...bound} onChange={(event) => onChange(event.target.value)} />}
    </Frame>
  );
}

type LinesFieldProps = FieldProps & Changes & Omit<TextareaHTMLAttributes<HTMLTextAreaElement>, 'onChange'>;

/** Like `TextField`, for several lines. */
export function LinesField({ label, hint, field, onChange, ...rest }: LinesFieldProps) {
  return (
    <Frame label={label} hint={hint} field={field}>
      {(bound) => (
        <textarea
          rows={3}
          spellCheck={false}
          {...rest}
          {...bound}
          onChange={(event) => onChange(event.target.value)}
        />
      )}
    </Frame>
  );
}

type SelectFieldProps = FieldProps &
  Changes &
  Omit<SelectHTMLAttributes<HTMLSelectElement>, 'onChange'> & {
    /** Value and label. */
    readonly choices: readonly (readonly [string, string])[];
  };

export function SelectField({ label, hint, field, choices, onChange, ...rest }: SelectFieldProps) {
  return (
    <Frame label={label} hint={hint} field={field}>
      {(bound) => (
        <select {...rest} {...bound} onChange={(event) => onChange(event.target.value)}>
          {choices.map(([value, name]) => (
            <option key={value} value={value}>
              {name}
            </option>
          ))}
        </select>
      )}
    </Frame>
  );
}

interface CheckFieldProps extends FieldProps {
  readonly checked: boolean;
  readonly onChange: (isChecked: boolean) => void;
}

export function CheckField({ label, hint, field, checked, onChange }: CheckFieldProps) {
  const id = useId();
  const problem = useProblem(field);
  return (
    <div className="check">
      <input
        {...boundTo(id, problem)}
        type="checkbox"
        checked={checked}
        onChange={(event) => onChange(event.target.checked)}
      />
      <label htmlFor={id}>{label}</label>
      <Remark id={id} hint={hint} problem={problem} />
    </div>
  );
}

interface FrameProps {
  readonly label: string;
  readonly hint: ReactNode;
  readonly field: string | undefined;
  /** The attributes that connect an input with its label, hint and error. */
  readonly children: (bound: ReturnType<typeof boundTo>) => ReactNode;
}

function Frame({ label, hint, field, children }: FrameProps) {
  const id = useId();
  const problem = useProblem(field);
  return (
    <div className="field">
      <label htmlFor={id}>{label}</label>
      {children(boundTo(id, problem))}
      <Remark id={id} hint={hint} problem={problem} />
    </div>
  );
}

function boundTo(id: string, problem: ReactNode) {
  return { id, 'aria-invalid': problem !== undefined, 'aria-describedby': `${id}-hint` };
}

interface RemarkProps {
  readonly id: string;
  readonly hint: ReactNode;
  readonly problem: ReactNode;
}

/** The hint of a field, or its error. */
function Remark({ id, hint, problem }: RemarkProps) {
  if (problem === undefined)
    return (
      <p id={`${id}-hint`} className="hint">
        {hint}
      </p>
    );
  return (
    <p id={`${id}-hint`} className="problem" role="alert">
      {problem}
    </p>
  );
}
