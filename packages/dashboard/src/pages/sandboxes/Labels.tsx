export function Labels({ labels }: { readonly labels: Readonly<Record<string, string>> }) {
  const entries = Object.entries(labels);
  if (entries.length === 0) return null;
  return (
    <span className="labels">
      {entries.map(([name, value]) => (
        <span key={name} className="label">
          {`${name}=${value}`}
        </span>
      ))}
    </span>
  );
}
