import { useMemo } from 'react';
import { encode } from 'uqr';

/** The quiet zone around the code, in modules, which readers need. */
const QUIET_ZONE = 4;

/** A text as a QR code. Dark on light in every theme, as readers expect. */
export function QrCode({ label, text }: { readonly label: string; readonly text: string }) {
  const { data, size } = useMemo(() => encode(text, { ecc: 'M', border: QUIET_ZONE }), [text]);
  const squares = data.flatMap((row, y) => row.flatMap((isDark, x) => (isDark ? `M${x} ${y}h1v1h-1z` : [])));
  return (
    <svg
      className="qr-code"
      viewBox={`0 0 ${size} ${size}`}
      shapeRendering="crispEdges"
      role="img"
      aria-label={label}
    >
      <path d={squares.join('')} />
    </svg>
  );
}
