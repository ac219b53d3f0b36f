import { CopyButton } from './CopyButton.tsx';

/** Lines to copy. */
export function CodeBlock({ label, text }: { readonly label: string; readonly text: string }) {
  return (
    <figure className="code-block">
      <figcaption>
        {label}
        <CopyButton text={text} label={`Copy: ${label}`} />
      </figcaption>
      <pre tabIndex={0}>{text}</pre>
    </figure>
  );
}
