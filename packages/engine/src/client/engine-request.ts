import type { ImageProgress } from '../images/images.ts';

export type OnProgress = (progress: ImageProgress) => void;

/** Transport of a request to the engine. */
export interface EngineCalls {
  json<Result>(method: string, path: string, body: object | undefined, signal?: AbortSignal): Promise<Result>;
  withProgress<Result>(
    path: string,
    body: object,
    onProgress: OnProgress,
    signal?: AbortSignal,
  ): Promise<Result>;
  download(path: string, signal?: AbortSignal): Promise<AsyncIterable<Uint8Array>>;
  upload(path: string, content: AsyncIterable<Uint8Array>, signal?: AbortSignal): Promise<void>;
}

export function ignoreProgress(): void {
  // Absent fields are not sent.
}

/** One segment of a path. */
export function segment(text: string): string {
  return encodeURIComponent(text);
}

export function query(values: object): string {
  const search = new URLSearchParams();
  for (const [key, value] of Object.entries(values)) {
    if (value !== undefined) search.set(key, Array.isArray(value) ? value.join(',') : String(value));
  }
  return search.toString();
}
