/** Where something is about to be shown. Appears after a moment, so that what is quick does not flicker. */
export function Loading({ rows = 3 }: { readonly rows?: number }) {
  return (
    <div className="loading" role="status" aria-label="Loading">
      {Array.from({ length: rows }, (_, index) => (
        <span key={index} className="bone" />
      ))}
    </div>
  );
}
