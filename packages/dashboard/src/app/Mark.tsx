/** The sign of the product: a box. */
export function Mark() {
  return (
    <svg className="mark" viewBox="0 0 24 24" width="24" height="24" aria-hidden="true">
      <path d="M3 8 12 3.500 21 8v8.500L12 21l-9-4.500z" />
      <path d="M3 8l9 4.500L21 8M12 12.500V21" />
    </svg>
  );
}
